"""Convolutions by cuDNN: graphs of NVIDIA's frontend (`import cudnn`, the extra [cudnn]), with the epilogue of XLA's custom calls.

    convolution(arguments, window)     the result, an array of CuPy; None where cuDNN is not installed, or has no engine for it

    image [n, c, ...], kernel [k, c / groups, ...]  --conv_fprop-->  * scale  + side * side_scale  + bias  --activation-->  [n, k, ...]

cuDNN names dimensions in this order, whatever lies in memory: strides say that. One spatial dimension becomes two. What it has not: holes
between the image's elements, negative padding, flipped kernels, groups of batches, integers; there `convolution.py` multiplies patches.
Sums are in float32, or in float64; f32 is rounded to TF32 where XLA would. A plan is kept for each shape, by device and thread, since a
handle is of these; its workspace comes from CuPy's pool at each call, on the current stream.
This file is not run without a GPU; the frontend's own checks of its graphs are, where it is installed. Source: NVIDIA's cuDNN frontend.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from xla_emitters.library.arguments import Array, LibraryArguments, pattern_type
from xla_emitters.library.cublas import rounds_to_tf32
from xla_emitters.library.kept_plans import Plans, kept_for
from xla_emitters.support.late_dataclass import dataclass

_TYPES = {"f16": "HALF", "bf16": "BFLOAT16", "f32": "FLOAT", "f64": "DOUBLE"}
"""HLO's element types -> cuDNN's."""
_KEPT = threading.local()
"""`devices`: number of a device -> `_Kept`."""


@dataclass(frozen=True)
class GraphPlan:
    """A graph that is built.

    graph       cudnn.pygraph
    tensors     operand number, "result" or "scale" ... -> its tensor
    numbers     the tensors that hold one number -> the number, on the device once the graph is built
    workspace   bytes
    """

    graph: Any
    tensors: Mapping[int | str, Any]
    numbers: Mapping[str, Array]
    workspace: int


def convolution(arguments: LibraryArguments, window: Sequence[Mapping[str, Any]]) -> Array | None:
    """See the file's head.

    window  each spatial dimension's size, stride, pad, base_dilation, window_dilation, reversed
    """
    xp = arguments.xp
    if not is_for_cudnn(arguments, window):
        return None
    kept = kept_for(_KEPT, int(xp.cuda.Device().id), "cudnn", _Kept)
    if kept is None:
        return None
    plan = kept.plan(arguments, window)
    if plan is None:
        return None
    name, shape = arguments.results[0]
    result = xp.empty(shape, pattern_type(name))
    given: dict[int | str, Any] = {**plan.numbers, "result": result}
    given |= {number: xp.ascontiguousarray(array) for number, array in enumerate(arguments.operands)}
    kept.frontend.set_stream(handle=kept.handle, stream=xp.cuda.get_current_stream().ptr)
    workspace = xp.empty(max(plan.workspace, 1), np.uint8)
    pointers = {tensor: given[key].data.ptr for key, tensor in plan.tensors.items()}
    plan.graph.execute(pointers, workspace.data.ptr, handle=kept.handle)
    return result


def is_for_cudnn(arguments: LibraryArguments, window: Sequence[Mapping[str, Any]]) -> bool:
    """Whether cuDNN may have the convolution."""
    config = arguments.config
    arrays = [number for number, role in enumerate(config["operands"]) if role != "padding"]
    types = {*(arguments.types[number] for number in arrays), arguments.results[0][0]}
    return (
        1 <= len(window) <= 3
        and config["batch_groups"] == 1
        and types <= _TYPES.keys()
        and all(map(math.prod, (array.shape for array in arguments.operands)))
        and all(math.prod(shape) for _, shape in arguments.results[:1])
        and all(dim["base_dilation"] == 1 and not dim["reversed"] and min(dim["pad"]) >= 0 for dim in window)
    )


class _Kept:
    """cuDNN on one device, in one thread: its handle, and the plans."""

    def __init__(self, frontend: ModuleType) -> None:
        self.frontend, self.handle = frontend, frontend.create_handle()
        self._plans = Plans[GraphPlan](frontend.cudnnGraphNotSupportedError, NotImplementedError)

    def plan(self, arguments: LibraryArguments, window: Sequence[Mapping[str, Any]]) -> GraphPlan | None:
        """The plan for the shapes; None where cuDNN has no engine for the graph."""
        shapes = [array.shape for array in arguments.operands]
        config = {key: value for key, value in arguments.config.items() if key != "window"}
        key = [config, list(window), shapes, arguments.results[0]]
        return self._plans.plan(key, lambda: built(self.frontend, arguments, window, self.handle))


def built(
    frontend: ModuleType, arguments: LibraryArguments, window: Sequence[Mapping[str, Any]], handle: Any
) -> GraphPlan:
    """The graph with its best plan. raises cudnnGraphNotSupportedError where no engine has it"""
    plan = graph_of(frontend, arguments, window, handle)
    graph = plan.graph
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([frontend.heur_mode.A, frontend.heur_mode.FALLBACK])
    graph.deselect_numeric_notes(_notes(frontend, arguments))
    graph.check_support()
    graph.build_plans()
    numbers = {name: arguments.xp.asarray(number) for name, number in plan.numbers.items()}
    return GraphPlan(graph, plan.tensors, numbers, graph.get_workspace_size())


def _notes(frontend: ModuleType, arguments: LibraryArguments) -> list[Any]:
    """What a plan must not do: add in a narrow type; round f32 to TF32, as tensor cores do, unless the module lets it (as of a product)."""
    notes = frontend.numerical_note
    is_single = arguments.types[0] == "f32" and not rounds_to_tf32(arguments.config)
    return [notes.REDUCED_PRECISION_REDUCTION, *([notes.TENSOR_CORE, notes.DOWN_CONVERT_INPUTS] if is_single else [])]


def graph_of(
    frontend: ModuleType, arguments: LibraryArguments, window: Sequence[Mapping[str, Any]], handle: Any = None
) -> GraphPlan:
    """The graph, as yet without a plan."""
    config, kinds = arguments.config, frontend.data_type
    held = kinds.DOUBLE if arguments.types[0] == "f64" else kinds.FLOAT
    graph = frontend.pygraph(
        io_data_type=held, intermediate_data_type=held, compute_data_type=held, handle=handle, name="convolution"
    )
    labels = dict(zip(("image", "kernel", "result"), config["labels"], strict=True))
    tensors, numbers = dict[int | str, Any](), dict[str, Array]()

    def tensor(number: int, dims: list[int], strides: list[int]) -> Any:
        kind = getattr(kinds, _TYPES[arguments.types[number]])
        tensors[number] = graph.tensor(name=f"p{number}", dim=dims, stride=strides, data_type=kind)
        return tensors[number]

    def number(name: str, value: float) -> Any:
        """A tensor of one number, in memory of the device."""
        ones = [1] * (max(len(window), 2) + 2)
        tensors[name] = graph.tensor(name=name, dim=ones, stride=ones, data_type=held)
        numbers[name] = np.full(1, value, np.float64 if held == kinds.DOUBLE else np.float32)
        return tensors[name]

    role = {name: place for place, name in enumerate(config["operands"])}
    flat: Mapping[str, Any] = {"pad": [0, 0], "stride": 1, "window_dilation": 1}
    spatial = [*([flat] if len(window) == 1 else []), *window]
    options: dict[str, Any] = {
        "pre_padding": [dim["pad"][0] for dim in spatial],
        "post_padding": [dim["pad"][1] for dim in spatial],
        "stride": [dim["stride"] for dim in spatial],
        "dilation": [dim["window_dilation"] for dim in spatial],
        "compute_data_type": held,
    }
    shapes = [array.shape for array in arguments.operands]
    factors = {name: tensor(role[name], *ordered(shapes[role[name]], labels[name])) for name in labels if name in role}
    value = _METHODS[config["kind"]](graph, factors, options)
    output = config["outputs"][0]
    if output == "result":
        if config["scale"] != 1:
            value = graph.mul(value, number("scale", config["scale"]))
        if "side" in role:
            side = tensor(role["side"], *ordered(shapes[role["side"]], labels["result"]))
            if config["side_scale"] != 1:
                side = graph.mul(side, number("side_scale", config["side_scale"]))
            value = graph.add(value, side)
        if "bias" in role:
            count, ones = math.prod(shapes[role["bias"]]), [1] * len(spatial)
            value = graph.add(value, tensor(role["bias"], [1, count, *ones], [count, 1, *ones]))
        value = _activated(graph, value, config)
    name, shape = arguments.results[0]
    dims, strides = ordered(shape, labels[output])
    value.set_output(True).set_data_type(getattr(kinds, _TYPES[name])).set_dim(dims).set_stride(strides)
    tensors["result"] = value
    return GraphPlan(graph, tensors, numbers, 0)


_METHODS: Mapping[str, Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Any]] = {
    "forward": lambda graph, given, options: graph.conv_fprop(image=given["image"], weight=given["kernel"], **options),
    "backward_input": lambda graph, given, options: graph.conv_dgrad(
        loss=given["result"], filter=given["kernel"], **options
    ),
    "backward_filter": lambda graph, given, options: graph.conv_wgrad(
        image=given["image"], loss=given["result"], **options
    ),
}


def ordered(shape: Sequence[int], label: str) -> tuple[list[int], list[int]]:
    """Sizes and strides of a row-major array in cuDNN's order: [b, f, spatial ...], of a kernel [o, i, spatial ...].

    >>> ordered((2, 8, 9, 16), "b01f"), ordered((3, 4, 5), "0io")
    (([2, 16, 8, 9], [1152, 1, 144, 16]), ([5, 4, 1, 3], [1, 5, 60, 20]))
    """
    steps = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    spatial = sorted(set(label) - set("bfio"))
    order = [label.index(letter) for letter in (("b", "f") if "b" in label else ("o", "i"))]
    order += [label.index(digit) for digit in spatial]
    dims, strides = [shape[dim] for dim in order], [steps[dim] for dim in order]
    if len(spatial) == 1:
        strides.insert(2, dims[2] * strides[2])
        dims.insert(2, 1)
    return dims, strides


def _activated(graph: Any, value: Any, config: Mapping[str, Any]) -> Any:
    match config["activation"]:
        case "relu":
            return graph.relu(value)
        case "relu6":
            return graph.relu(value, lower_clip=0.0, upper_clip=6.0)
        case "elu":
            return graph.elu(value)
        case "leaky_relu":
            return graph.leaky_relu(value, negative_slope=config["slope"])
        case _:
            return value
