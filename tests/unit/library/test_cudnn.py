"""Convolutions by cuDNN: the calls that are made, on a stand-in that computes them point by point; and the graphs, by NVIDIA's frontend.

The stand-in is independent of `library.convolution`: sums over all places and points, in cuDNN's order of dimensions, by strides.
"""

from __future__ import annotations

import ctypes
import random
import sys
import warnings
from collections.abc import Callable
from itertools import product
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from unit.runtime.fake_gpu import fake_cupy

from xla_emitters.library import cudnn
from xla_emitters.library.arguments import LibraryArguments, numpy_type, pattern_type
from xla_emitters.library.convolution import NO_CUDNN, SpatialWindow
from xla_emitters.library.function_table import call

TYPES = {"HALF": np.float16, "FLOAT": np.float32, "DOUBLE": np.float64, "BFLOAT16": numpy_type("bf16")}
BOUNDS = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-5, "f64": 1e-12}
"""Of the relative error: about twice the type's rounding, or of sums of at most a hundred terms."""


class Tensor:
    def __init__(self, value: Callable[[dict[Any, int]], Any]) -> None:
        self.value = value
        self.type, self.dim, self.stride = "", list[int](), list[int]()

    def set_output(self, is_output: bool) -> Tensor:
        assert is_output
        return self

    def set_data_type(self, kind: str) -> Tensor:
        self.type = kind
        return self

    def set_dim(self, dim: list[int]) -> Tensor:
        self.dim = dim
        return self

    def set_stride(self, stride: list[int]) -> Tensor:
        self.stride = stride
        return self

    def at(self, address: int) -> Any:
        kind = np.dtype(TYPES[self.type])
        count = 1 + sum((size - 1) * step for size, step in zip(self.dim, self.stride, strict=True))
        memory = (ctypes.c_uint8 * (count * kind.itemsize)).from_address(address)
        return as_strided(np.frombuffer(memory, kind), self.dim, [step * kind.itemsize for step in self.stride])


class Graph:
    """What `cudnn.pygraph` has of convolutions and their epilogues."""

    def __init__(
        self, *, io_data_type: str, intermediate_data_type: str, compute_data_type: str, handle: Any, name: str
    ):
        assert io_data_type == intermediate_data_type == compute_data_type
        self.held, self.handle, self.built, self.notes = TYPES[compute_data_type], handle, list[str](), list[str]()
        self.pointwise = 0

    def tensor(self, *, name: str, dim: list[int], stride: list[int], data_type: str) -> Tensor:
        made = Tensor(lambda given: made.at(given[made]).astype(self.held))
        return made.set_data_type(data_type).set_dim(dim).set_stride(stride)

    def _pairs(self, image: Any, kernel: Any, places: Any, options: dict[str, Any]) -> Any:
        """(image's element or None, kernel's element, result's element) by spatial indices."""
        for place in product(*map(range, places)):
            for point in product(*map(range, kernel)):
                at = [
                    p * s - low + k * d
                    for p, s, low, k, d in zip(
                        *(place, options["stride"], options["pre_padding"], point, options["dilation"]), strict=True
                    )
                ]
                if all(0 <= x < size for x, size in zip(at, image, strict=True)):
                    yield tuple(at), point, place

    def _convolution(self, role: str, one: Tensor, other: Tensor, options: dict[str, Any]) -> Tensor:
        stand_in.asked.append({"x w": "forward", "y w": "backward_input"}.get(role, "backward_filter"))
        made = Tensor(lambda _: None)

        def value(given: dict[Any, int]) -> Any:
            arrays = {name: each.value(given) for name, each in ((role.split()[0], one), (role.split()[1], other))}
            (missing,) = {"x", "w", "y"} - arrays.keys()
            dims = {name: array.shape for name, array in arrays.items()} | {missing: tuple(made.dim)}
            found = np.zeros(made.dim, self.held)
            groups = dims["x"][1] // dims["w"][1]
            per, out = dims["w"][1], dims["w"][0] // groups
            places = [
                (size + low + high - (k - 1) * d - 1) // s + 1
                for size, low, high, k, d, s in zip(
                    dims["x"][2:], options["pre_padding"], options["post_padding"], dims["w"][2:],
                    options["dilation"], options["stride"], strict=True,
                )
            ]  # fmt: skip
            assert tuple(places) == tuple(dims["y"][2:])
            for at, point, place in self._pairs(dims["x"][2:], dims["w"][2:], places, options):
                for group in range(groups):
                    x = np.s_[:, group * per : (group + 1) * per, *at]
                    w = np.s_[group * out : (group + 1) * out, :, *point]
                    y = np.s_[:, group * out : (group + 1) * out, *place]
                    if missing == "y":
                        found[y] += arrays["x"][x] @ arrays["w"][w].T
                    elif missing == "x":
                        found[x] += arrays["y"][y] @ arrays["w"][w]
                    else:
                        found[w] += arrays["y"][y].T @ arrays["x"][x]
            return found

        made.value = value
        return made

    def conv_fprop(self, *, image: Tensor, weight: Tensor, compute_data_type: str, **options: Any) -> Tensor:
        made = self._convolution("x w", image, weight, options)
        x, w = image.dim, weight.dim
        made.dim = [x[0], w[0]] + [
            (size + low + high - (k - 1) * d - 1) // s + 1
            for size, low, high, k, d, s in zip(
                x[2:], options["pre_padding"], options["post_padding"], w[2:], options["dilation"], options["stride"],
                strict=True,
            )
        ]  # fmt: skip
        return made

    def conv_dgrad(self, *, loss: Tensor, filter: Tensor, compute_data_type: str, **options: Any) -> Tensor:
        return self._convolution("y w", loss, filter, options)

    def conv_wgrad(self, *, image: Tensor, loss: Tensor, compute_data_type: str, **options: Any) -> Tensor:
        return self._convolution("x y", image, loss, options)

    def _by_elements(self, function: Callable[..., Any], *tensors: Tensor) -> Tensor:
        self.pointwise += 1
        return Tensor(lambda given: function(*(each.value(given) for each in tensors)))

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        return self._by_elements(np.multiply, a, b)

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        return self._by_elements(np.add, a, b)

    def relu(self, input: Tensor, lower_clip: float = 0, upper_clip: float = np.inf) -> Tensor:
        return self._by_elements(lambda value: np.clip(value, lower_clip, upper_clip), input)

    def elu(self, input: Tensor) -> Tensor:
        return self._by_elements(lambda value: np.where(value > 0, value, np.expm1(np.minimum(value, 0))), input)

    def leaky_relu(self, input: Tensor, negative_slope: float) -> Tensor:
        return self._by_elements(lambda value: np.where(value > 0, value, value * negative_slope), input)

    def validate(self) -> None:
        self.built.append("validate")

    def build_operation_graph(self) -> None:
        self.built.append("build_operation_graph")

    def create_execution_plans(self, modes: list[str]) -> None:
        assert self.built == ["validate", "build_operation_graph"]
        if stand_in.refuses == "all" or (stand_in.refuses == "epilogues" and self.pointwise):
            raise stand_in.cudnnGraphNotSupportedError("no engine")

    def deselect_numeric_notes(self, notes: list[str]) -> None:
        self.notes += notes

    def check_support(self) -> None:
        self.built.append("check_support")

    def build_plans(self) -> None:
        stand_in.plans += 1

    def get_workspace_size(self) -> int:
        return 64

    def execute(self, pointers: dict[Tensor, int], workspace: int, handle: Any) -> None:
        assert workspace
        assert handle is self.handle
        for tensor, address in pointers.items():
            if tensor.value.__qualname__.startswith("Graph.tensor"):
                continue
            out = tensor.at(address)
            out[...] = tensor.value(pointers)


class NotSupported(Exception):
    pass


stand_in: Any = SimpleNamespace(
    pygraph=Graph,
    data_type=SimpleNamespace(**{name: name for name in TYPES}),
    heur_mode=SimpleNamespace(A="A", FALLBACK="FALLBACK"),
    numerical_note=SimpleNamespace(
        REDUCED_PRECISION_REDUCTION="reduced", TENSOR_CORE="tensor core", DOWN_CONVERT_INPUTS="down"
    ),
    cudnnGraphNotSupportedError=NotSupported,
    create_handle=lambda: SimpleNamespace(stream=None),
    set_stream=lambda handle, stream: setattr(handle, "stream", stream),
    plans=0,
    refuses="",
    asked=[],
)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "cudnn", stand_in)
    monkeypatch.setattr(cudnn, "_KEPT", SimpleNamespace())
    monkeypatch.setattr(stand_in, "plans", 0)
    monkeypatch.setattr(stand_in, "refuses", "")
    with fake_cupy() as module:
        yield module


def label_of(draw: random.Random, first: str, last: str, spatial: int) -> str:
    digits = "".join(map(str, range(spatial)))
    return draw.choice([first + digits + last, first + last + digits, digits + first + last, last + digits + first])


def drawn(seed: int) -> tuple[dict[str, Any], list[Any], tuple[str, tuple[int, ...]]]:
    """A configuration, its operands and its result's type and shape."""
    draw = random.Random(seed)
    count, groups, batch = draw.choice([1, 2, 2, 3]), draw.choice([1, 1, 2]), draw.choice([1, 2])
    features, outputs = draw.choice([1, 3, 4]), draw.choice([1, 2])
    window = [
        {
            "size": draw.choice([1, 2, 3]), "stride": draw.choice([1, 2]), "pad": [draw.choice([0, 1, 2]), draw.choice([0, 1])],
            "base_dilation": 1, "window_dilation": draw.choice([1, 1, 2]), "reversed": False,
        }
        for _ in range(count)
    ]  # fmt: skip
    image = [draw.choice([5, 6, 8]) for _ in window]
    padded = SpatialWindow(window).padded_sizes(image)
    places = [
        (size - (dim["size"] - 1) * dim["window_dilation"] - 1) // dim["stride"] + 1
        for size, dim in zip(padded, window, strict=True)
    ]
    labels = [label_of(draw, *ends, count) for ends in ("bf", "io", "bf")]
    held = [
        {"b": batch, "f": features * groups, **{str(i): size for i, size in enumerate(image)}},
        {"i": features, "o": outputs * groups, **{str(i): dim["size"] for i, dim in enumerate(window)}},
        {"b": batch, "f": outputs * groups, **{str(i): size for i, size in enumerate(places)}},
    ]
    shapes = [tuple(sizes[letter] for letter in label) for sizes, label in zip(held, labels, strict=True)]
    kind = draw.choice(["forward", "forward", "backward_input", "backward_filter"])
    operands = {"forward": ["image", "kernel"], "backward_input": ["result", "kernel"]}.get(kind, ["image", "result"])
    output = {"forward": "result", "backward_input": "image"}.get(kind, "kernel")
    by_name = dict(zip(("image", "kernel", "result"), shapes, strict=True))
    given = [by_name[name] for name in operands]
    if kind == "forward" and draw.random() < 0.6:
        operands, given = [*operands, "bias"], [*given, (outputs * groups,)]
        if draw.random() < 0.5:
            operands, given = [*operands, "side"], [*given, shapes[2]]
    element = draw.choice(["f16", "bf16", "f32", "f64"])
    config = {
        "types": [element] * len(operands), "operands": operands, "outputs": [output, "workspace"][: draw.choice([1, 2])],
        "kind": kind, "labels": labels, "window": window, "feature_groups": groups, "batch_groups": 1,
        "scale": draw.choice([1, 1, 0.5]), "side_scale": draw.choice([1, 0.25]),
        "activation": draw.choice(["none", "relu", "relu6", "elu", "leaky_relu"]), "slope": 0.125, "precision": "",
    }  # fmt: skip
    if kind != "forward":
        config["scale"] = 1
    numbers = np.random.default_rng(seed)
    arrays = [numbers.standard_normal(shape).astype(numpy_type(element)) for shape in given]
    return config, arrays, (element, by_name[output])


def results_of(config: dict[str, Any], result: tuple[str, tuple[int, ...]]) -> list[tuple[str, tuple[int, ...]]]:
    return [result, ("u8", (16,))][: len(config["outputs"])]


def patterns(arrays: list[Any], element: str) -> list[Any]:
    return [np.ascontiguousarray(array).view(pattern_type(element)) for array in arrays]


@pytest.mark.parametrize("seed", range(80))
def test_any_window_layout_groups_and_epilogue(seed: int, cupy: Any) -> None:
    config, arrays, result = drawn(seed)
    element = result[0]
    wanted = call("convolution", config, arrays, results_of(config, result))[0]
    given = [cupy.asarray(array) for array in patterns(arrays, element)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            found = call("convolution", config, given, results_of(config, result), xp=cupy)[0]
            host = cupy.asnumpy(found).view(numpy_type(element)).astype(np.float64)
            bound = BOUNDS[element]
            np.testing.assert_allclose(host, wanted.astype(np.float64), rtol=bound, atol=bound * 8)
    assert stand_in.plans == 1  # the second call finds it


@pytest.mark.parametrize(
    ("size", "more", "image"),
    [
        (4, {"pad": [2, 2]}, 5),
        (3, {"pad": [1, 2]}, 4),
        (3, {"pad": [-1, 0], "base_dilation": 3, "stride": 2}, 5),
        (2, {"pad": [0, 4], "window_dilation": 3, "reversed": True}, 6),
        (1, {"pad": [1, 1]}, 4),
    ],
)
def test_a_dilated_image_is_convolved_as_it_is(
    size: int, more: dict[str, Any], image: int, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the convolutions has the same padding on both sides; the expected one is of the image with zeros in it."""
    dim = {"size": size, "stride": 1, "pad": [0, 0], "base_dilation": 2, "window_dilation": 1, "reversed": False} | more
    wide = (image - 1) * dim["base_dilation"] + 1
    extent = (size - 1) * dim["window_dilation"] + 1
    shape = (2, (wide + sum(dim["pad"]) - extent) // dim["stride"] + 1, 4)
    config = {
        "types": ["f32", "f32"], "operands": ["image", "kernel"], "outputs": ["result", "workspace"], "kind": "forward",
        "labels": ["b0f", "0io", "b0f"], "window": [dim], "feature_groups": 1, "batch_groups": 1, "scale": 1,
        "side_scale": 0, "activation": "none", "slope": 0, "precision": "",
    }  # fmt: skip
    draw = np.random.default_rng(1)
    x, kernel = draw.standard_normal((2, image, 3), np.float32), draw.standard_normal((size, 3, 4), np.float32)
    spread = np.zeros((2, wide, 3), np.float32)
    spread[:, :: dim["base_dilation"]] = x
    results = results_of(config, ("f32", shape))
    wanted = call("convolution", {**config, "window": [{**dim, "base_dilation": 1}]}, [spread, kernel], results)[0]
    given = [cupy.asarray(array) for array in (x, kernel)]
    asked, is_for_cudnn = list[Any](), cudnn.is_for_cudnn
    monkeypatch.setattr(cudnn, "is_for_cudnn", lambda a, dims: asked.extend(dims) or is_for_cudnn(a, dims))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = call("convolution", config, given, results, xp=cupy)[0]
    assert asked
    assert all(each["pad"][0] == each["pad"][1] >= 0 for each in asked)
    np.testing.assert_allclose(cupy.asnumpy(found), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("refused", ["epilogues", "all"])
def test_what_cudnn_does_not_have_is_computed_otherwise(refused: str, cupy: Any) -> None:
    """Without an engine for an epilogue that is computed after it; without one for the convolution, patches are multiplied."""
    seen = set[bool]()
    for seed in range(30):
        config, arrays, result = drawn(seed)
        given = [cupy.asarray(array) for array in patterns(arrays, result[0])]
        wanted = call("convolution", config, arrays, results_of(config, result))[0]
        stand_in.refuses, stand_in.plans = refused, 0
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = call("convolution", config, given, results_of(config, result), xp=cupy)[0]
        host = cupy.asnumpy(found).view(numpy_type(result[0])).astype(np.float64)
        bound = BOUNDS[result[0]]
        np.testing.assert_allclose(host, wanted.astype(np.float64), rtol=bound, atol=8 * bound)
        assert bool(said) == (refused == "all")
        assert bool(stand_in.plans) == (refused != "all")
        seen.add(len(arrays) > 2)
    assert seen == {False, True}


def test_a_gradient_without_an_engine_has_no_epilogue_to_leave_out(cupy: Any) -> None:
    """Its result is an image or a kernel: it is not asked for again as a convolution forwards."""
    stand_in.refuses = "all"
    for seed in range(60):
        config, arrays, result = drawn(seed)
        if config["kind"] == "forward" or config["activation"] == "none":
            continue
        given = [cupy.asarray(array) for array in patterns(arrays, result[0])]
        stand_in.asked.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call("convolution", config, given, results_of(config, result), xp=cupy)
        assert stand_in.asked == [config["kind"]]


@pytest.mark.parametrize(
    ("key", "value"), [("base_dilation", 2), ("reversed", True), ("pad", [-1, 0])], ids=["holes", "flipped", "cut"]
)
def test_windows_that_cudnn_lacks(key: str, value: Any) -> None:
    config, arrays, result = drawn(3)
    arguments = LibraryArguments(config, arrays, [result])
    window = config["window"]
    assert cudnn.is_for_cudnn(arguments, window)
    assert not cudnn.is_for_cudnn(arguments, [{**window[0], key: value}, *window[1:]])
    assert not cudnn.is_for_cudnn(LibraryArguments({**config, "batch_groups": 2}, arrays, [result]), window)
    assert not cudnn.is_for_cudnn(LibraryArguments({**config, "types": ["s8"] * 4}, arrays, [result]), window)
    assert not cudnn.is_for_cudnn(arguments, window * 4)


def test_without_cudnn_a_warning_says_what_to_install(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cudnn", None)
    config, arrays, result = drawn(3)
    given = [cupy.asarray(array) for array in patterns(arrays, result[0])]
    with pytest.warns(UserWarning, match=r"the extra \[cudnn\]"):
        call("convolution", config, given, results_of(config, result), xp=cupy)
    assert "[cudnn]" in NO_CUDNN


@pytest.mark.parametrize(
    ("element", "precision", "notes"),
    [
        ("f32", "highest", {"reduced", "tensor core", "down"}),
        ("f32", "default", {"reduced"}),
        ("f16", "highest", {"reduced"}),
        ("bf16", "highest", {"reduced"}),
    ],
)
def test_f32_is_rounded_to_tf32_if_the_module_lets_it(element: str, precision: str, notes: set[str], cupy: Any) -> None:
    seed = next(n for n in range(200) if drawn(n)[2][0] == element)
    config, arrays, result = drawn(seed)
    config["precision"] = precision
    arguments = LibraryArguments(config, patterns(arrays, element), [result], xp=cupy)
    assert set(cudnn.built(stand_in, arguments, config["window"], None).graph.notes) == notes


@pytest.mark.parametrize("seed", range(40))
def test_the_frontend_takes_the_graphs(seed: int) -> None:
    """NVIDIA's own checks, which need no GPU: names, types, sizes and strides; the sizes that it infers are the result's."""
    frontend = pytest.importorskip("cudnn", reason="the extra [cudnn] is not installed", exc_type=ImportError)
    config, arrays, result = drawn(seed)
    handle = frontend.Handle(0x1000, 0, 0)  # nothing is done with it before an engine is asked for
    arguments = LibraryArguments(config, patterns(arrays, result[0]), [result])
    plan = cudnn.graph_of(frontend, arguments, config["window"], handle)
    plan.graph.validate()
    label = dict(zip(("image", "kernel", "result"), config["labels"], strict=True))[config["outputs"][0]]
    dims, strides = cudnn.ordered(result[1], label)
    made = plan.tensors["result"]
    assert (list(made.get_dim()), list(made.get_stride())) == (dims, strides)
    assert len(plan.tensors) == len(arrays) + 1 + len(plan.numbers)
    assert prod(dims) == prod(result[1])
