"""Functions of the runtime, called through their C interface."""

from __future__ import annotations

import ctypes
from string import ascii_lowercase, digits
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xla_emitters.dtypes import Array
from xla_emitters.errors import UsageError
from xla_emitters.program.ral_name import RalName
from xla_emitters.runtime.ral.api import RUNNING, Erased, MemRef, Registry, name_of, serve
from xla_emitters.runtime.ral.context import Call, Context
from xla_emitters.runtime.ral.functions import element_name

Matrix = Annotated[Array, MemRef("f32", 2)]
Bytes = Annotated[Array, MemRef("u8", 1)]
ELEMENTS = ("pred", "s8", "s32", "s64", "u8", "u32", "f16", "bf16", "f32", "f64", "c64")
SCALARS = ("pvoid", "ppvoid", "i1", "i8", "i32", "i64", "ui8", "ui64", "f16", "bf16", "f32", "f64")


def gemm(
    ctx: Call, stream: None, lhs: Matrix, rhs: Matrix, out: Matrix, lhs_transposed: bool, rhs_transposed: bool
) -> None:
    np.matmul(lhs.T if lhs_transposed else lhs, rhs.T if rhs_transposed else rhs, out=out)


SEED = "ral_gemm___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1___void"


def test_the_name_of_the_seed_finds_what_was_registered() -> None:
    registry = Registry()
    registry("ral_gemm")(gemm)
    assert str(name_of("ral_gemm", "gpu", gemm)) == SEED.replace("___", "___gpu___", 1)
    assert registry.get(registry.parse(SEED)) is gemm
    assert registry.get(RalName.parse(SEED, "cpu")) is None
    assert RalName.parse(SEED).without_device == SEED


codes = st.one_of(
    st.sampled_from(SCALARS),
    st.builds(lambda element, rank: str(MemRef(element, rank)), st.sampled_from(ELEMENTS), st.integers(0, 12)),
)
# Not by `from_regex`, which makes a table of all of Unicode in a fresh checkout: 4 s for these letters.
words = st.text(ascii_lowercase + digits, min_size=1)
names = st.builds(
    RalName,
    st.builds(
        lambda letter, rest, more: "_".join([letter + rest, *more]),
        st.sampled_from(ascii_lowercase),
        st.text(ascii_lowercase + digits),
        st.lists(words, max_size=3),
    ),
    st.sampled_from(("cpu", "gpu")),
    st.lists(codes, max_size=6).map(tuple),
    st.lists(codes, max_size=3).map(tuple),
)


@settings(deadline=None, max_examples=60)
@given(names)
def test_a_name_is_read_as_it_was_written(name: RalName) -> None:
    assert RalName.parse(str(name)) == name
    assert RalName.parse(name.without_device, name.device) == name


@settings(deadline=None)
@given(st.sampled_from(ELEMENTS), st.integers(0, 12))
def test_a_buffers_code_says_its_elements(element: str, rank: int) -> None:
    assert element_name(str(MemRef(element, rank))) == element


def test_annotations_say_all_types() -> None:
    def function(ctx: Call, n: int, x: float, name: str, small: Annotated[int, "i32"]) -> tuple[Bytes, int]: ...

    assert str(name_of("f", "cpu", function)) == "f___cpu___pvoid_i64_f64_pvoid_i32___m1dui8_i64"

    def wrong(ctx: Call, x: list[int]) -> None: ...

    with pytest.raises(UsageError, match=r"takes no list\[int\]"):
        name_of("f", "cpu", wrong)


# -------------------------------------------------------------------------------------------------------------- the call


class Memory:
    """Slots as a caller in C has them: each value anywhere, and an array of pointers to them."""

    def __init__(self, *values: Any) -> None:
        self.slots = list(values)
        self.pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        self.address = ctypes.addressof(self.pointers)


def buffer(array: Array, allocated: int = 0) -> list[Any]:
    strides = [stride // array.itemsize for stride in array.strides]
    return [ctypes.c_int64(word) for word in (allocated, array.ctypes.data, 0, *array.shape, *strides)]


class NoBuffers:
    """A call whose functions made nothing."""

    def named(self, allocated: int) -> None:
        return None

    def name(self, array: Array) -> int:
        return 7


def call_erased(name: RalName, function: Any, memory: Memory) -> None:
    erased, context = Erased(name, function), Call(Context(), [])
    erased(context, NoBuffers(), memory.address, erased.values(NoBuffers(), memory.address))


def test_arguments_are_read_where_the_pointers_say() -> None:
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((4, 3), np.float32)
    out = np.zeros((2, 4), np.float32)
    flags = ctypes.c_bool(False), ctypes.c_bool(True)
    memory = Memory(*[ctypes.c_void_p(None)] * 2, *buffer(a), *buffer(b), *buffer(out), *flags)
    call_erased(name_of("ral_gemm", "gpu", gemm), gemm, memory)
    np.testing.assert_array_equal(out, a @ b.T)


def test_results_are_written_behind_the_arguments() -> None:
    made = np.arange(5, dtype=np.uint8)

    def function(ctx: Call, n: int, text: str, numbers: str, x: float) -> tuple[Bytes, int]:
        assert (n, text, numbers, x) == (-3, "layer", (4, -5), 0.5)
        return made, 11

    texts = [ctypes.create_string_buffer(text) for text in (b"layer", b"[4, -5]")]
    arguments = [ctypes.c_void_p(None), ctypes.c_int64(-3), *(ctypes.c_void_p(ctypes.addressof(t)) for t in texts)]
    results = [ctypes.c_int64(-1) for _ in range(6)]
    call_erased(name_of("f", "cpu", function), function, Memory(*arguments, ctypes.c_double(0.5), *results))
    assert [slot.value for slot in results] == [7, made.ctypes.data, 0, 5, 1, 11]


def test_an_error_stays_on_this_side_and_sets_the_status() -> None:
    """Also one that no function should raise."""
    failed = list[BaseException]()

    class Fails:
        def serve(self, name: bytes, arguments: int) -> None:
            raise KeyboardInterrupt(name)

        def fail(self, error: BaseException) -> None:
            failed.append(error)

    words = (ctypes.c_int64 * 3)()
    context = ctypes.addressof(words)
    RUNNING[context] = Fails()
    try:
        serve()(context, b"ral_gemm", None)
    finally:
        del RUNNING[context]
    assert list(words) == [0, 0, 1]
    assert [type(error) for error in failed] == [KeyboardInterrupt]
