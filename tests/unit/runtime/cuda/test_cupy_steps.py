"""What a warm call of a GPU program asks of CuPy, and what calls at the same time share: on the fake CuPy, whose device is the executor."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from long_lists import but_long
from unit.runtime.fake_gpu import of_corpus

from xla_emitters.errors import ToolError
from xla_emitters.pipelines.program_gpu import GpuProgram
from xla_emitters.pipelines.program_inputs import drawn_inputs
from xla_emitters.program import Program
from xla_emitters.runtime.cuda.cupy_steps import queue

KERNELS = {"softmax": "fusions/softmax", "temporaries": "programs/cross_entropy", "counted": "stablehlo/loop"}
ENQUEUES = {"empty", "launchKernel", "gemmStridedBatchedEx", "memcpyAsync 3"}
"""An allocation, a launch, and a copy on the device."""
ASKS = {"get_current_stream", "getDevice"}


def recorded(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all functions of CuPy, and all methods of its arrays, that are called from now on."""
    calls = list[str]()

    def watch(holder: Any, name: str, function: Any) -> None:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(f"{name} {arguments[3]}" if name == "memcpyAsync" else name)
            return function(*arguments, **options)

        monkeypatch.setattr(holder, name, call)

    for name in ("asarray", "asnumpy", "empty", "full", "ascontiguousarray", "from_dlpack", "matmul"):
        watch(cupy, name, getattr(cupy, name))
    cublas = cupy.neighbours["cupy_backends.cuda.libs.cublas"]
    watch(cublas, "gemmStridedBatchedEx", cublas.gemmStridedBatchedEx)
    for holder in (cupy.cuda, cupy.cuda.runtime, cupy.cuda.driver):
        for name, found in list(vars(holder).items()):
            if callable(found) and not isinstance(found, type):
                watch(holder, name, found)
    for name in ("__setitem__", "__getitem__", "astype", "copy"):
        watch(cupy.ndarray, name, getattr(cupy.ndarray, name))
    for name in ("record", "synchronize"):
        watch(cupy.cuda.Event, name, getattr(cupy.cuda.Event, name))
    watch(cupy.cuda.Device, "synchronize", cupy.cuda.Device.synchronize)
    watch(cupy.state.stream, "synchronize", cupy.state.stream.synchronize)
    return calls


def warm_calls(cupy: Any, monkeypatch: pytest.MonkeyPatch, file: str, sizes: dict[str, int]) -> list[str]:
    program = of_corpus(file)
    calls, on_gpu = recorded(cupy, monkeypatch), GpuProgram(program.compilation)
    inputs = drawn_inputs(program, sizes, 0)
    on_device = [cupy.asarray(array) for array in inputs]
    on_gpu.run(on_device)
    calls.clear()
    found = on_gpu.run(on_device)
    seen = list(calls)
    for array, wanted in zip(found, program.run(inputs, stage="hlo"), strict=True):
        np.testing.assert_allclose(array.host, wanted, rtol=1e-5, atol=1e-5)
    return seen


@pytest.mark.parametrize("name", but_long(KERNELS, ["softmax"]))
def test_a_warm_call_allocates_and_launches_and_does_nothing_else(
    name: str, cupy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop with a counter reads nothing back: the host counts."""
    calls = warm_calls(cupy, monkeypatch, KERNELS[name], {"b": 3, "s": 4})
    assert set(calls) - ASKS == {"empty", "launchKernel"}
    assert max(map(calls.count, ASKS)) == 1  # once a call, not once a step
    if name == "counted":
        assert calls.count("launchKernel") > 3


def test_products_and_copies_are_enqueued_too(cupy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder: its loop runs as often as its input is long."""
    calls = warm_calls(cupy, monkeypatch, "programs/decoder", {"b": 2, "s": 5})
    assert set(calls) - ASKS == ENQUEUES
    assert calls.count("gemmStridedBatchedEx") == 5


@pytest.mark.long  # of the same copies as the decoder's, in a program of many kernels
def test_known_numbers_are_copied_to_the_device_when_a_size_is_new(
    cupy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = warm_calls(cupy, monkeypatch, "programs/dropout", {"b": 2, "s": 5})
    assert set(calls) - ASKS == ENQUEUES - {"gemmStridedBatchedEx"}


def test_numbers_that_a_gather_takes_out_of_a_shape_are_not_on_the_device(
    cupy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They follow from sizes, so no kernel computes them and nothing is copied."""
    calls = warm_calls(cupy, monkeypatch, "stablehlo/gather_rows", {"b": 2, "s": 5})
    assert set(calls) - ASKS == {"empty", "launchKernel"}


def test_a_predicate_is_read_by_one_copy_and_one_wait(cupy: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is decided for each iteration, and once more where the loop ends; the counter that the program returns is copied at the end."""
    calls = warm_calls(cupy, monkeypatch, "programs/until_large", {"b": 2, "s": 3})
    reads = [call for call in calls if call in ("memcpyAsync 2", "streamSynchronize")]
    decided = calls.count("streamSynchronize")
    assert decided > 1
    assert reads == ["memcpyAsync 2", "streamSynchronize"] * decided
    assert set(calls) - ASKS - ENQUEUES == {"memcpyAsync 2", "streamSynchronize", "memcpyAsync 1"}
    assert calls.count("memcpyAsync 1") == 1


# ---- calls at the same time -------------------------------------------------------------------------------------------------------------


def drawn(cupy: Any, program: Program, seed: int, sizes: dict[str, int]) -> tuple[list[Any], list[Any]]:
    """Arguments on the device, and the results that NumPy has for them."""
    inputs = drawn_inputs(program, sizes, seed)
    return [cupy.asarray(array) for array in inputs], program.run(inputs, stage="hlo")


@pytest.mark.parametrize("order", [(7, 8), (8, 7), ()])
def test_work_of_two_streams_may_be_in_any_order(order: tuple[int, ...], cupy: Any) -> None:
    """No work is done before both calls have returned: then stream by stream, or a step of each in turn."""
    program, sizes = of_corpus("programs/cross_entropy"), {"b": 3, "s": 4}
    on_gpu = GpuProgram(program.compilation)
    (one, of_one), (two, of_two) = (drawn(cupy, program, seed, sizes) for seed in (1, 2))
    assert on_gpu.loaded.bind([array.shape for array in one]).arena_bytes
    for _ in range(2):  # at first, and warm
        cupy.queues = {}
        found = list[list[Any]]()
        for number, inputs in ((7, one), (8, two)):
            cupy.state.stream = SimpleNamespace(ptr=number, synchronize=lambda: None)
            found.append(on_gpu.run(inputs))
        waiting, cupy.queues = cupy.queues, None
        assert len(waiting[7]) == len(waiting[8]) > 1
        turns = zip(waiting[7], waiting[8], strict=True)
        for work in [w for number in order for w in waiting[number]] or [w for pair in turns for w in pair]:
            work()
        for results, wanted in zip(found, (of_one, of_two), strict=True):
            np.testing.assert_allclose(results[0].host, wanted[0], rtol=1e-5)


def test_two_calls_on_one_stream_are_in_order(cupy: Any) -> None:
    """The second call fills the words of its arguments, and enqueues all of its work, before the first one's work is done."""
    program, sizes = of_corpus("programs/cross_entropy"), {"b": 3, "s": 4}
    on_gpu = GpuProgram(program.compilation)
    pairs = [drawn(cupy, program, seed, sizes) for seed in (1, 2, 3)]
    on_gpu.run(pairs[0][0])
    cupy.queues = {}
    found = [on_gpu.run(inputs) for inputs, _ in pairs]
    waiting, cupy.queues = cupy.queues, None
    for work in waiting[0]:
        work()
    for results, (_, wanted) in zip(found, pairs, strict=True):
        np.testing.assert_allclose(results[0].host, wanted[0], rtol=1e-5)


def test_four_threads_each_on_its_own_stream(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of them on the stream of their thread, which has one address for all."""
    program, own = of_corpus("programs/cross_entropy"), threading.local()
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: getattr(own, "stream", cupy.state.stream))
    on_gpu = GpuProgram(program.compilation)
    pairs = [[drawn(cupy, program, 10 * n + k, {"b": 2 + k, "s": 3}) for k in range(2)] for n in range(4)]
    wrong, start = list[str](), threading.Barrier(4)

    def work(number: int) -> None:
        own.stream = SimpleNamespace(ptr=2 if number % 2 else 10 + number, synchronize=lambda: None)
        start.wait()
        for _ in range(2):
            for inputs, wanted in pairs[number]:
                found, *_ = on_gpu.run(inputs)
                if not np.allclose(found.host, wanted[0], rtol=1e-5):
                    wrong.append(f"{number}: {found.host} is not {wanted[0]}")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert not wrong


def test_the_stream_of_each_thread_is_a_queue_of_its_own(cupy: Any) -> None:
    """Its address is 2 in all threads."""
    with ThreadPoolExecutor(1) as thread:
        for address, same in ((1, True), (2, False)):
            cupy.state.stream = SimpleNamespace(ptr=address)
            assert (thread.submit(queue, cupy).result() == queue(cupy)) is same


def test_a_frame_belongs_to_a_device_and_a_stream(cupy: Any) -> None:
    """Equal addresses of streams on two devices are two streams: the kernels and the arena are the device's own."""
    program, sizes = of_corpus("programs/cross_entropy"), {"b": 3, "s": 4}
    on_gpu = GpuProgram(program.compilation)
    inputs, wanted = drawn(cupy, program, 1, sizes)
    for device in (0, 1, 0):
        cupy.state.device = device
        found, *_ = on_gpu.run(inputs)
        np.testing.assert_allclose(found.host, wanted[0], rtol=1e-5)
    assert len(cupy.loads) == 2


def test_a_missing_library_is_said_with_a_way_out(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def matmul(*_: Any, **__: Any) -> Any:
        raise ImportError("no libcublas")

    program = of_corpus("programs/decoder")
    monkeypatch.setattr(cupy.neighbours["cupy_backends.cuda.libs.cublas"], "gemmStridedBatchedEx", matmul)
    with pytest.raises(ToolError, match="'gemm' needs cuBLAS: no libcublas"):
        GpuProgram(program.compilation).run(drawn_inputs(program, {"b": 2, "s": 3}, 0))
