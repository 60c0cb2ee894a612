"""PyTorch modules in: exported by `torch.export`, lowered through JAX to StableHLO, compiled by us as programs.

    p = from_torch(module, x, dynamic_shapes=({0: Dim("b")},))      module -> ATen ops -> StableHLO with symbolic sizes -> a program
    p(x)                                  takes and returns what `module` does; of any b

    p = from_torch(module, x, parameters="arguments")
    p(module.state_dict(), x)             parameters and buffers of each call, by name; else they are constants of the program

What goes in decides what comes out: PyTorch's tensors if an argument is one, NumPy's arrays else. On the CPU nothing is copied on the way:
arrays and tensors share memory, those of bf16 and of eight-bit floats by their bit patterns. On a GPU they are handed over by DLPack.
`ExportedProgram`s, as `torch.export.load` returns them, are taken too. Only this file imports torch, on first use.
Not covered: modules that change their buffers (batch norms while they train), random numbers (dropout while it trains), sizes that depend
on data (nonzero). They are refused with the layer's path. There is no gradient through a program; one that a module computes is a result.
Source: PyTorch's documentation of torch.export, torch.func and torch.utils.dlpack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from importlib import import_module
from inspect import Parameter, Signature, signature
from itertools import zip_longest
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Unpack, cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.computation import ParameterOp
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import DataError, ParseError, Unsupported, UsageError, XlaEmittersError
from xla_emitters.explore.from_jax.jax_program import jax_package
from xla_emitters.explore.from_torch.torch_graph import STAGE, Placeholder, TorchGraph, graph_of
from xla_emitters.explore.from_torch.torch_rows import rows_of
from xla_emitters.explore.from_torch.torch_transforms import without_transforms
from xla_emitters.graph.entry import entry_of
from xla_emitters.library.arguments import element_name
from xla_emitters.pipelines.options import CompileKeywords, CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import Program
from xla_emitters.program.compiled import OnArguments, is_on_gpu, platform_of
from xla_emitters.runtime.arrays import host_array
from xla_emitters.support.extras import installed
from xla_emitters.text.stablehlo import parse_stablehlo
from xla_emitters.text.stablehlo.stablehlo_printer import print_stablehlo

PARAMETERS = ("constants", "arguments")
_MOST_LINES = 12
"""Of what torch.export says where it refuses a module."""


@dataclass(frozen=True, kw_only=True, repr=False)
class TorchProgram(Program):
    """A program that takes and returns what the PyTorch module does.

    in_tree, out_tree  PyTorch's tree specs of ((arguments), {keywords}) and of the result
    state    names of the module's parameters and buffers that lead the program's parameters; () if they are constants
    taken    indices of the leaves of the arguments that are the parameters after those
    fixed    index of a leaf that is no tensor -> the value that the program is for
    leaves   of the result, in order: ("array", None), ("size", None) for a Python integer made of sizes, ("value", it)
    signature  of the module's forward; None for an ExportedProgram, which does not keep it
    """

    in_tree: Any
    out_tree: Any
    state: tuple[str, ...]
    taken: tuple[int, ...]
    fixed: Mapping[int, Any]
    leaves: tuple[tuple[str, Any], ...]
    signature: Signature | None

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Runs the program where its arrays are: on the GPU if one of them is there, else on the CPU.

        arguments  the module's, tensors of PyTorch or arrays of NumPy; before them the state, if it is an argument: `module.state_dict()`
        returns    the module's result, of arrays if arguments are arrays and none is a tensor, else of tensors
        raises     DataError for another structure, other types or sizes; ToolError on a GPU without CuPy
        """
        arrays = self.flat(arguments, keywords)
        platform = platform_of([array.detach() if _is_tensor(array) else array for array in arrays])
        return self.on(platform)(*arguments, **keywords)

    def on(self, platform: str) -> OnModules:
        """As `Program.on`, on the module's arguments."""
        return OnModules(super().on(platform), platform, self)

    def run_cpu(self, *inputs: Any, stage: str | None = None, **keywords: Any) -> Any:
        """Runs the IR of a stage on the CPU, on the module's arguments. raises like `Program.run_cpu`; DataError for another structure"""
        flat = self.flat(inputs, keywords)
        results = super().run_cpu(*map(_host_array, flat), stage=stage)
        results = [results] if len(self.results) == 1 else results
        return self.tree(results, is_of_torch=_is_of_torch(inputs, keywords))

    def flat(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
        """The arrays that the program takes, of a call. raises DataError for another structure, or another value of what is no tensor"""
        tree, given, state = _torch().utils._pytree, list(arguments), list[Any]()
        if self.state:
            if not given or not isinstance(given[0], Mapping):
                raise DataError(
                    f"{self.name} takes its parameters first", stage=STAGE, help="p(module.state_dict(), ...)"
                )
            held = cast("Mapping[str, Any]", given.pop(0))
            if missing := [name for name in self.state if name not in held]:
                raise DataError(f"{self.name}: the state has no '{missing[0]}'", stage=STAGE)
            state = [held[name] for name in self.state]
        wanted = tree.tree_unflatten(["*"] * self.in_tree.num_leaves, self.in_tree)
        try:
            leaves = self.in_tree.flatten_up_to(_laid_out(self.signature, given, keywords, *wanted))
        except (TypeError, ValueError) as error:
            takes = ", ".join([*map(str, wanted[0]), *(f"{key}={value}" for key, value in wanted[1].items())])
            raise DataError(
                f"{self.name}: the arguments are of another structure: {error}",
                stage=STAGE,
                details=(f"it takes ({takes.replace(repr('*'), '*')})",),
            ) from error
        for number, value in self.fixed.items():
            if not _is_same(leaves[number], value):
                raise DataError(
                    f"{self.name} is for {value!r}, and {_brief(leaves[number])} was given",
                    stage=STAGE,
                    help="from_torch makes a program for each value of what is no tensor",
                )
        arrays = [*state, *(leaves[number] for number in self.taken)]
        for array, name in zip(arrays, self.names, strict=True):
            _refuse_without_elements(array, name)
        return arrays

    def tree(self, results: Sequence[Any], *, is_of_torch: bool) -> Any:
        """The module's result, of the program's results."""
        left, leaves = iter(zip(results, self.results, strict=True)), list[Any]()
        for kind, value in self.leaves:
            if kind == "value":
                leaves.append(value)
                continue
            array, spec = next(left)
            leaves.append(int(array) if kind == "size" else _tensor(array, spec.dtype) if is_of_torch else array)
        return _torch().utils._pytree.tree_unflatten(leaves, self.out_tree)


@dataclass(frozen=True)
class OnModules(OnArguments):
    """A program of PyTorch on one platform, as a function of the module's arguments."""

    program: TorchProgram

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """The module's result: of tensors where this runs; as `Program.on` returns it if arguments are arrays and none is a tensor."""
        flat = self.program.flat(inputs, keywords)
        is_on_host = self.platform == "cpu"
        arrays = [
            _host_array(each) if is_on_host or not is_on_gpu(_detached(each)) else _detached(each) for each in flat
        ]
        return self.program.tree(self.run(arrays), is_of_torch=_is_of_torch(inputs, keywords))


def from_torch(
    module: Any,
    *arguments: Any,
    keywords: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    parameters: str = "constants",
    **given: Unpack[CompileKeywords],
) -> TorchProgram:
    """Compiles a PyTorch module for arguments like these; no GPU is needed.

    module     a `torch.nn.Module`, a function of tensors, or an `ExportedProgram`, which needs no arguments
    arguments  of the module's forward: tensors, and what PyTorch's trees hold of them. Their values are not read
    keywords   arguments that it takes by name
    dynamic_shapes  which sizes are unknown, as in `torch.export.export`: ({0: Dim("b")}, None), {"x": {0: Dim("b")}}
    parameters "constants" of the program, which stay what they are now; with `constants=FILE` of `compile` they are in that file.
               "arguments": a call takes them first, by name, as `module.state_dict()` has them
    given      as in `compile`: target, stage, record ...
    raises     Unsupported for what torch.export refuses, in its words, and for an op without a row, with the layer's path; UsageError;
               ToolError without the extra [torch]

    >>> import torch
    >>> p = from_torch(torch.nn.Linear(4, 3), torch.ones(2, 4), dynamic_shapes=({0: torch.export.Dim("b")},))
    >>> p(torch.ones(5, 4)).shape
    torch.Size([5, 3])
    """
    if parameters not in PARAMETERS:
        raise UsageError(f"no parameters='{parameters}'", stage=STAGE, help=" or ".join(map(repr, PARAMETERS)))
    if unknown := sorted(set(given) - {row.name for row in fields(CompileOptions)}):
        raise UsageError(
            f"from_torch has no option '{unknown[0]}'", stage=STAGE, help="the module's own: keywords={...}"
        )
    torch = _torch()
    rows = rows_of(torch, jax_package())
    name = type(module).__name__ if isinstance(module, torch.nn.Module) else getattr(module, "__name__", "exported")
    exported, dims = module, list[Sequence[Any]]()
    if not isinstance(module, torch.export.ExportedProgram):
        if not callable(module) or isinstance(module, type):
            raise UsageError(f"from_torch takes a module or a function, not {module!r}", stage=STAGE)
        if not isinstance(module, torch.nn.Module):
            module = _as_module(torch, module, len(arguments))
        dims = _dims(torch, module, arguments, keywords or {}, dynamic_shapes)
        exported = _exported(torch, module, name, arguments, keywords or {}, dynamic_shapes, dims)
    elif arguments or keywords or dynamic_shapes is not None:
        raise UsageError("an ExportedProgram has its arguments and sizes", stage=STAGE, help="from_torch(exported)")
    graph = graph_of(torch, jax_package(), rows, exported)
    stablehlo, kept = _lowered(graph, dims, name, as_constants=parameters == "constants")
    program = compile_program(stablehlo, CompileOptions(**given))
    of_arguments = [each for each in graph.placeholders if each.kind == "argument"]
    leaves = tuple(each for each in graph.outputs if each[0] != "token")
    out_tree = exported.call_spec.out_spec
    if out_tree.num_leaves != len(leaves):  # a joint graph: the loss and gradients, in order
        out_tree = torch.utils._pytree.tree_structure((0,) * len(leaves))
    return TorchProgram(
        **{row.name: getattr(program, row.name) for row in fields(Program)},
        in_tree=exported.call_spec.in_spec,
        out_tree=out_tree,
        state=tuple(each.name for each in kept if each.kind == "state" and parameters == "arguments"),
        taken=tuple(number for number, each in enumerate(of_arguments) if any(each is other for other in kept)),
        fixed={number: each.value for number, each in enumerate(of_arguments) if not each.is_tensor},
        leaves=leaves,
        signature=signature(cast("Any", module).forward) if isinstance(module, torch.nn.Module) else None,
    )


def _lowered(
    graph: TorchGraph, dims: Sequence[Sequence[Any]], name: str, *, as_constants: bool
) -> tuple[ModuleOp, list[Placeholder]]:
    """The program's module, and what its arguments were before some became constants."""
    text, numbers = graph.lowered(graph.names_of(dims), name)
    module = parse_stablehlo(text, f"<{name}>")
    tensors = [each for each in graph.placeholders if each.is_tensor]
    kept = [tensors[number] for number in numbers]
    _describe(module, kept, as_constants=as_constants)
    return module, kept


def loaded(path: str | Path) -> Any:
    """The `ExportedProgram` in a file. raises ToolError without the extra [torch], ParseError where PyTorch does not read it"""
    torch = _torch()
    rows_of(torch, jax_package())  # says what is missing before the file is read
    with suppress(ImportError):  # PyTorch knows the ops of quantized graphs after this
        import_module("torch.ao.quantization.fx._decomposed")
    try:
        return torch.export.load(path)
    except Exception as error:
        raise ParseError(f"PyTorch does not read {path}: {str(error).splitlines()[0]}", stage=STAGE) from error


def text_of_archive(path: str | Path) -> str:
    """StableHLO of the program in a file, with its parameters as constants. raises like `loaded` and `from_torch`"""
    torch, exported = _torch(), loaded(path)
    graph = graph_of(torch, jax_package(), rows_of(torch, jax_package()), exported)
    return print_stablehlo(_lowered(graph, [], Path(path).stem, as_constants=True)[0])


def _exported(
    torch: ModuleType,
    module: Any,
    name: str,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    dynamic_shapes: Any,
    dims: Sequence[Sequence[Any]],
) -> Any:
    """The ExportedProgram. raises Unsupported in torch.export's words

    dims  for each leaf of the arguments a Dim or None for each axis
    """

    def exported(module: Any) -> Any:
        return torch.export.export(module, arguments, dict(keywords), dynamic_shapes=dynamic_shapes, strict=False)

    try:
        try:
            found = exported(module)
        except Exception as error:
            # Forward-mode derivatives within `vmap` lack an attribute.
            if "functorch" not in str(error) and not isinstance(error, AttributeError):
                raise
            found = None
        # It may also end with tensors of a transform as constants, which have no elements.
        is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
        if found is None or any(map(is_wrapped, filter(_is_tensor, found.constants.values()))):
            found = exported(without_transforms(torch, module, arguments, keywords, dims))
        return found
    except XlaEmittersError:
        raise
    except Exception as error:
        first, *rest = [line.rstrip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise Unsupported(
            f"torch.export refuses {name}: {first}", stage=STAGE, details=tuple(rest[:_MOST_LINES])
        ) from error


def _as_module(torch: ModuleType, function: Callable[..., Any], count: int) -> Any:
    """A module whose forward is the function, with its signature; for one of C, of which Python knows none, with `count` arguments."""
    made = type(getattr(function, "__name__", "function"), (torch.nn.Module,), {})()

    def forward(*arguments: Any) -> Any:
        return function(*arguments)

    try:
        signature(function)
        made.forward = _with_lines(function)
    except ValueError:
        names = [Parameter(f"x{number}", Parameter.POSITIONAL_OR_KEYWORD) for number in range(count)]
        forward.__signature__ = Signature(names)  # pyright: ignore[reportFunctionMemberAccess]
        made.forward = forward
    return made


def _with_lines(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy called `forward`: torch.export keeps the lines of functions of that name alone."""
    if not isinstance(function, FunctionType):
        return function
    code = function.__code__.replace(co_name="forward")
    made = FunctionType(code, function.__globals__, "forward", function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _dims(
    torch: ModuleType, module: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any], dynamic_shapes: Any
) -> list[Sequence[Any]]:
    """For each leaf of the arguments what `dynamic_shapes` says of its axes; () for nothing."""
    found, tree = list[Sequence[Any]](), torch.utils._pytree
    by_name = cast("Mapping[str, Any]", dynamic_shapes) if isinstance(dynamic_shapes, Mapping) else None
    try:
        named = torch.export.dynamic_shapes._combine_args(module, arguments, dict(keywords))
    except (TypeError, ValueError) as error:
        raise UsageError(f"the example arguments are not those of the module: {error}", stage=STAGE) from error

    def visit(value: Any, said: Any) -> None:
        if isinstance(value, torch.Tensor) and said:
            axes = cast("Mapping[int, Any]", said)
            is_by_axis, count = isinstance(said, Mapping), value.ndim
            of_axes = [axes.get(n, axes.get(n - count)) for n in range(count)] if is_by_axis else list(said)
            found.append(of_axes)
        elif said and isinstance(value, Mapping) and isinstance(said, Mapping):
            for key, part in cast("Mapping[Any, Any]", value).items():
                visit(part, cast("Mapping[Any, Any]", said).get(key))
        elif said and isinstance(value, list | tuple):
            for part, of_part in zip(cast("Sequence[Any]", value), said, strict=False):
                visit(part, of_part)
        else:
            found.extend([()] * len(tree.tree_leaves(value)))

    in_order = list(cast("Sequence[Any]", dynamic_shapes or ())) if by_name is None else []
    for (name, value), said in zip_longest(named.items(), in_order[: len(named)]):
        visit(value, said if by_name is None else by_name.get(name))
    return found


def _describe(module: ModuleOp, kept: Sequence[Placeholder], *, as_constants: bool) -> None:
    """The module's parameters get the names that the caller knows; those that are no arguments become constants, and the rest are numbered
    anew."""
    number = 0
    for parameter, each in zip(list(entry_of(module).parameters), kept, strict=True):
        if each.kind == "constant" or (each.kind == "state" and as_constants):
            array = _host_array(each.value)
            constant = ConstantOp.from_array(array, dtype(element_name(array.dtype)), parameter.instruction_name.data)
            Rewriter.replace_op(parameter, constant)
            continue
        assert isinstance(parameter, ParameterOp)
        parameter.attributes["jax.arg_name"] = StringAttr(each.name)
        parameter.properties["number"] = IntegerAttr(number, i64)
        number += 1


# --------------------------------------------------------------------------------------------------------------- arguments


def _laid_out(
    takes: Signature | None,
    given: Sequence[Any],
    keywords: Mapping[str, Any],
    first: Sequence[Any],
    named: Iterable[str],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call by position and by name as the program has them; what is left out has its default.

    takes   the signature of the module's forward, if it is known
    first, named  the arguments that the program has by position, and by name
    raises  TypeError for arguments that the forward does not take, or that the program was not made for

    >>> _laid_out(signature(lambda x, scale=2, flag=True: x), [1], {"flag": False}, ["*"], ["scale", "flag"])
    ((1,), {'scale': 2, 'flag': False})
    """
    of_any = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    if takes is None or any(each.kind in of_any for each in takes.parameters.values()):
        return tuple(given), dict(keywords)
    bound = takes.bind(*given, **keywords)
    names = list(takes.parameters)[: len(first)]
    for name in bound.arguments.keys() - {*names, *named}:
        if not _is_same(bound.arguments[name], takes.parameters[name].default):
            raise TypeError(f"it was made without '{name}'")
    bound.apply_defaults()
    return tuple(bound.arguments[name] for name in names), {name: bound.arguments[name] for name in named}


def _is_same(given: Any, value: Any) -> bool:
    """Whether an argument is the value of what is no tensor; a tensor of one element is its number."""
    if given is value:
        return True
    try:
        return bool(given == value) or bool(given != given and value != value)
    except (RuntimeError, ValueError):  # an array has no truth value
        return False


def _brief(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"an array of shape {tuple(shape)}"


def _refuse_without_elements(value: Any, name: str) -> None:
    """raises DataError for what is no array, and for tensors whose elements are not in memory one by one"""
    if value is None or isinstance(value, str):
        raise DataError(f"'{name}' is {value!r}, and a tensor is wanted", stage=STAGE)
    if not _is_tensor(value):
        return
    kinds = {
        "nested": value.is_nested,
        "sparse": value.layout is not _torch().strided,
        "quantized": value.is_quantized,
        "meta": value.is_meta,
    }
    if found := [kind for kind, is_so in kinds.items() if is_so]:
        raise DataError(
            f"'{name}' is a {found[0]} tensor", stage=STAGE, help="a program takes dense tensors of a CPU or GPU"
        )


# ------------------------------------------------------------------------------------------------------------------ arrays


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _torch().Tensor)


def _is_of_torch(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether the results of a call are tensors: where an argument is one, or none is an array."""
    leaves = _torch().utils._pytree.tree_leaves((arguments, keywords))
    return any(map(_is_tensor, leaves)) or not any(hasattr(leaf, "shape") for leaf in leaves)


def _detached(value: Any) -> Any:
    return value.detach() if _is_tensor(value) else value


def _host_array(value: Any) -> Array:
    """A tensor, or what NumPy takes, as NumPy's array: of the same memory where that is the host's."""
    if not _is_tensor(value):
        return host_array(value, "", "an argument")
    torch, tensor = _torch(), value.detach().cpu().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if hasattr(np, name) or tensor.dtype == torch.bool:
        return tensor.numpy()
    # A type that NumPy lacks: its bits, under the name that ml_dtypes has for it, which is PyTorch's.
    bits = torch.int16 if tensor.itemsize == 2 else torch.int8
    return tensor.view(bits).numpy().view(getattr(import_module("ml_dtypes"), name))


def _tensor(array: Any, name: str) -> Any:
    """A result of HLO's type `name` as PyTorch's tensor: of the same memory."""
    torch, wanted = _torch(), _torch_name(name)
    if not isinstance(array, np.ndarray | np.generic):  # CuPy's, of bit patterns where it lacks the type
        found = torch.from_dlpack(array)
        return found if found.dtype == wanted else found.view(wanted)
    held = np.asarray(cast("Array", array))
    if held.dtype.isbuiltin == 1:
        return torch.from_numpy(held)
    return torch.from_numpy(held.view(np.int16 if held.dtype.itemsize == 2 else np.int8)).view(wanted)


def _torch_name(name: str) -> Any:
    """PyTorch's type for HLO's. The names of ml_dtypes and of PyTorch are the same."""
    return getattr(_torch(), {"bool_": "bool"}.get(found := dtype(name).numpy.name, found))


def _torch() -> ModuleType:
    with installed("PyTorch", STAGE, extras="torch"):
        return import_module("torch")
