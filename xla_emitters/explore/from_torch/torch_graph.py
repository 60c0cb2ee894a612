"""What `torch.export` made of a module, as StableHLO with symbolic sizes: each ATen op is JAX's ops, which `jax.export` lowers.

    aten.linear(x, w, b)     a node in the layer `layers.0`       x @ w.T + b in JAX, in the name scope layers/0

The rows that say what an ATen op is in JAX are torchax's (`torch_rows`). An op without a row is decomposed by PyTorch's own rules, again
until all have one; what is left is refused by its name, with the layer and the line that called it. Nothing is executed.

- Sizes. A symbol of torch.export has the name of the caller's `Dim`, and is JAX's symbol of that name. All are in one scope, with the
  ranges of the Dims as constraints, which the program checks when it is called.
- Types. The result of a row is converted to the type that PyTorch says. JAX has 64-bit types while this runs, and only then.
- Assertions on sizes: one that always fails is refused. One that JAX cannot decide is left out: what was exported checks the ranges of
  all sizes, and a program checks sizes that must be equal.
Source: PyTorch's documentation of torch.export (ExportedProgram, graph signature); JAX's of jax.export.symbolic_shape.
"""

# Graphs are PyTorch's and values JAX's, neither of which has types here.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import getfile, isbuiltin
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from xla_emitters.errors import Place, Unsupported, XlaEmittersError
from xla_emitters.explore.from_jax.jax_program import jax_export
from xla_emitters.explore.from_torch.torch_rows import Rows

STAGE = "torch"
PLATFORM = "cuda"
_NUMBER = "~node"
"""Between the name of a layer and the number of a node, in names of scopes while JAX lowers."""
_DECOMPOSITIONS = 12
"""Most rounds of decompositions; each decomposes what the round before left without a row."""
_ASSERTION = re.compile(r"Input shapes do not match the [^\"]*? for more details\.")
"""What JAX says where sizes of arguments do not fit; the parts of it that are of use:"""
_OBTAINED = re.compile(r"'(\w+)' = (\S+) from specification")
_UNEQUAL = re.compile(r"args\[(\d+)\]\.shape\[(\d+)\] \(= (\S+)\) and the specification '([^']+)' \(= (\S+)\)")
_FUNCTIONS_OF_SIZES = ("max", "min", "mod", "floordiv")
"""Names in JAX's expressions of sizes; a Dim with such a name gets a `_`."""
_LOWEST = 2
"""The least size that torch.export says of a Dim without `min`, which 1 is allowed for all the same."""


@dataclass(frozen=True)
class Placeholder:
    """One input of the exported graph, in order.

    kind   "state" for a parameter or buffer, "constant" for a tensor in the module's code, "argument" for a leaf of the arguments, "token"
           for the order of effects
    name   of the state in the module, `layers.0.weight`; of the argument as the module's forward calls it
    value  the tensor of a state or constant; of an argument that is not a tensor its value, for which the program is
    is_tensor
    """

    kind: str
    name: str
    value: Any
    is_tensor: bool


@dataclass(frozen=True)
class TorchGraph:
    """A graph whose ops all have a row, and what its inputs and outputs are.

    outputs   for each leaf of the module's result: ("array", None), ("size", None) for an integer made of sizes, or ("value", it); before
              them ("token", None)
    """

    torch: ModuleType
    jax: ModuleType
    rows: Rows
    exported: Any
    placeholders: tuple[Placeholder, ...]
    outputs: tuple[tuple[str, Any], ...]

    def names_of(self, dims: Sequence[Sequence[Any]]) -> dict[str, str]:
        """torch.export's symbol -> the name of its `Dim`; without a Dim the argument and the axis that have it first, `x_0`.

        dims  for each leaf of the arguments a Dim or None for each axis; () for none
        """
        names, unnamed, leaves = dict[str, str](), dict[str, str](), iter(dims)
        for node, each in self._inputs():
            if each.kind != "argument":
                continue
            given = next(leaves, ())
            shape: Sequence[Any] = node.meta["val"].shape if each.is_tensor else ()
            for axis, extent in enumerate(shape):
                if isinstance(extent, int):
                    continue
                for symbol in map(str, extent.node.expr.free_symbols):
                    unnamed.setdefault(symbol, f"{each.name}_{axis}")
                    dim = given[axis] if axis < len(given) else None
                    if (name := getattr(getattr(dim, "root", dim), "__name__", None)) is not None:
                        names.setdefault(symbol, f"{name}_" if name in _FUNCTIONS_OF_SIZES else name)
        return unnamed | names

    def lowered(self, names: Mapping[str, str], function_name: str) -> tuple[str, tuple[int, ...]]:
        """StableHLO, and the numbers of its arguments among the placeholders that are tensors: JAX drops those that no result needs.

        names   torch.export's symbol -> its name in the program
        raises  Unsupported for what a row, or JAX, refuses
        """
        jax = self.jax
        with jax.enable_x64(True):
            symbols = self._symbols(names)
            shapes = [
                jax.ShapeDtypeStruct(
                    tuple(symbols.get(str(extent), extent) for extent in node.meta["val"].shape),
                    self.rows.dtype(node.meta["val"].dtype),
                )
                for node, each in self._inputs()
                if each.is_tensor
            ]

            def function(*arrays: Any) -> list[Any]:
                return self._traced(arrays)

            function.__name__ = function_name
            try:
                exported = jax_export().export(jax.jit(function), platforms=[PLATFORM])(*shapes)
            except XlaEmittersError:
                raise
            except Exception as error:
                raise self._not_lowered(error) from error
        text = _ASSERTION.sub(self._in_words, exported.mlir_module())
        return self._with_places(text), tuple(exported.module_kept_var_idx)

    def _not_lowered(self, error: Exception) -> Unsupported:
        """JAX's refusal of an op for a GPU, at the node that its location names."""
        why = f"JAX does not lower {{}} for {PLATFORM}: {_said(error)}"
        found = re.search(rf"{_NUMBER}(\d+)", str(error))
        if found is None:
            return Unsupported(why.format("the module"), stage=STAGE)
        node = list(self.numbers)[int(found[1])]
        return refused(node, why.format(_op(node)))

    def _in_words(self, found: re.Match[str]) -> str:
        """What JAX asserts about the sizes of arguments, in the caller's words: axis 0 of 'mask' is {0}, and b is {1}."""
        names = [each.name for each in self.placeholders if each.is_tensor]
        said, values = found[0], dict(_OBTAINED.findall(found[0]))
        if one := _UNEQUAL.search(said):
            return f"axis {one[2]} of '{names[int(one[1])]}' is {one[3]}, and {one[4]} is {one[5]}"
        if one := re.search(r"Expected value >= 1 for dimension variable '(\w+)'", said):
            return f"{one[1]} is {values[one[1]]}: an unknown size is at least 1"
        if one := re.search(r"symbolic shape constraint (.*?)\. Expected", said):
            sizes = [f"{name} is {value}" for name, value in values.items() if re.search(rf"\b{name}\b", one[1])]
            return f"the program is for {one[1]}, and {', '.join(sizes)}"
        if one := re.search(r"Division had remainder (\{\d+\}) when computing the value of '(\w+)'", said):
            shapes = re.findall(r"args\[(\d+)\]\.shape = (\([^)]*\))", said)
            for number, shape in shapes:
                if re.search(rf"\b{one[2]}\b", shape):
                    return f"'{names[int(number)]}' is not of the shape {shape} for any {one[2]}: {one[1]} is left over"
        return said

    def _with_places(self, text: str) -> str:
        """The text with the caller's lines in its locations, in place of the lines of rows."""
        places = [_place_text(node) for module in self._modules() for node in module.graph.nodes]

        def written(found: re.Match[str]) -> str:
            place = places[int(found[2])]
            return f'loc("{found[1]}{found[3]}"({place}))' if place else f'loc("{found[1]}{found[3]}"({found[4]}))'

        return re.sub(rf'loc\("([^"]*?){_NUMBER}(\d+)([^"]*)"\((#\w+)\)\)', written, text)

    def _modules(self) -> list[Any]:
        """The graph, and those of conditions and loops in it."""
        return [module for module in self.exported.graph_module.modules() if hasattr(module, "graph")]

    @cached_property
    def numbers(self) -> dict[Any, int]:
        """The number of each node, by which the text's locations name it."""
        return {node: number for number, node in enumerate(chain(*(module.graph.nodes for module in self._modules())))}

    def _inputs(self) -> Iterable[tuple[Any, Placeholder]]:
        nodes = [node for node in self.exported.graph.nodes if node.op == "placeholder"]
        return zip(nodes, self.placeholders, strict=True)

    def _symbols(self, names: Mapping[str, str]) -> Mapping[str, Any]:
        """Text of each unknown size, `2*s39` -> JAX's size, all of one scope."""
        sizes = {
            str(extent): _renamed(str(extent), names)
            for node, each in self._inputs()
            if each.is_tensor
            for extent in node.meta["val"].shape
            if not isinstance(extent, int)
        }
        if not sizes:
            return {}
        constraints = list[str]()
        for symbol, bounds in self.exported.range_constraints.items():
            if (name := names.get(str(symbol))) is None:
                continue
            lowest, highest = str(bounds.lower), str(bounds.upper)
            if lowest.isdigit() and int(lowest) > _LOWEST:
                constraints.append(f"{name} >= {lowest}")
            if highest.isdigit():
                constraints.append(f"{name} <= {highest}")
        found = jax_export().symbolic_shape(", ".join(sizes.values()), constraints=constraints)
        return dict(zip(sizes, found, strict=True))

    def _traced(self, arrays: Sequence[Any]) -> list[Any]:
        """The results that are arrays, of JAX's tracers for the inputs that are tensors."""
        left = iter(arrays)
        given = [next(left) if each.is_tensor else each.value for each in self.placeholders]
        results = _Interpreter(self, self.exported.graph_module).run(given)
        return [
            self.jax.numpy.asarray(value, "int64") if kind == "size" else value
            for (kind, _), value in zip(self.outputs, results, strict=True)
            if kind in ("array", "size")
        ]


class _Interpreter:
    """Runs a graph of ATen ops on JAX's values, node after node."""

    def __init__(self, graph: TorchGraph, module: Any) -> None:
        self.graph, self.module, self.values = graph, module, dict[Any, Any]()
        self.extents = dict[Any, Any]()
        """PyTorch's expression of an array's size -> JAX's: PyTorch knows that two divisions in a row are one, JAX does not."""

    def run(self, given: Sequence[Any]) -> Any:
        inputs = iter(given)
        for node in self.module.graph.nodes:
            match node.op:
                case "placeholder":
                    self.values[node] = next(inputs)
                case "get_attr":
                    self.values[node] = self._attribute(node)
                case "call_function":
                    self.values[node] = self._called(node)
                case "output":
                    return self._map(node.args[0])
                case _:
                    raise refused(node, f"a graph with {node.op}")
        return ()

    def _map(self, value: Any) -> Any:
        return self.graph.torch.fx.node.map_arg(value, self.values.__getitem__)

    def _attribute(self, node: Any) -> Any:
        found = self.module
        for part in str(node.target).split("."):
            found = getattr(found, part)
        if isinstance(found, self.graph.torch.Tensor):
            return self.graph.rows.array(found)
        return _Interpreter(self.graph, found)  # the body of a condition or a loop

    def _called(self, node: Any) -> Any:
        graph, wanted = self.graph, node.meta.get("val")
        row = graph.rows.of(node.target)
        if row is None and graph.rows.is_random(node.target):
            why = f"{_op(node)} draws random numbers, which no program draws as PyTorch does"
            raise refused(node, why, "module.eval() leaves dropout out; or make the numbers an argument")
        if row is None and isbuiltin(node.target):
            why = f"a size is computed from a float by {node.target.__name__}: sizes are whole numbers of Dims here"
            raise refused(node, why, "give the size in place of a factor, size=(...); or leave its Dim out")
        if row is None and isinstance(wanted, graph.torch.Tensor) and not node.all_input_nodes:
            return graph.rows.array(node.target(*node.args, **node.kwargs))  # the elements of a window, of known size
        if row is None:
            raise refused(node, f"torchax has no row for {_op(node)}, and PyTorch no decomposition")
        arguments, keywords = self._map((node.args, node.kwargs))
        if isinstance(getattr(wanted, "dtype", None), graph.torch.dtype):
            arguments, keywords = graph.rows.with_scalars(node, arguments, keywords, wanted.dtype)
        scope, _ = _layer(node)
        try:
            with graph.jax.named_scope(f"{scope.replace('.', '/') or 'module'}{_NUMBER}{graph.numbers[node]}"):
                return self._typed(node, row(*arguments, **keywords), wanted)
        except XlaEmittersError:
            raise
        except Exception as error:
            if graph.torch.fx.experimental.symbolic_shapes.free_unbacked_symbols(wanted):
                why = f"the size of what {_op(node)} makes depends on data"
                raise refused(node, why, "torch.where(mask, x, y) makes an array of a size that is known") from error
            raise refused(node, f"{_op(node)}: {_said(error)}") from error

    def _typed(self, node: Any, found: Any, wanted: Any) -> Any:
        """The value with the types that PyTorch says. raises Unsupported where a row gives another shape"""
        if isinstance(wanted, tuple | list) and isinstance(found, tuple | list):
            return [self._typed(node, *pair) for pair in zip(found, wanted, strict=False)]
        if isinstance(wanted, self.graph.torch.SymInt):
            return self.extents.get(cast("Any", wanted).node.expr, found)
        if found is None or not isinstance(wanted, self.graph.torch.Tensor):
            return found
        array, wanted = self.graph.jax.numpy.asarray(found), cast("Any", wanted)
        pairs = list(zip(array.shape, wanted.shape, strict=False))
        if array.ndim != wanted.ndim or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
            raise refused(
                node, f"torchax makes {_op(node)} an array of shape {array.shape}, PyTorch {tuple(wanted.shape)}"
            )
        for ours, theirs in pairs:
            if not isinstance(theirs, int) and not isinstance(ours, int):
                self.extents.setdefault(theirs.node.expr, ours)
        return array.astype(self.graph.rows.dtype(wanted.dtype))


def graph_of(torch: ModuleType, jax: ModuleType, rows: Rows, exported: Any) -> TorchGraph:
    """The graph of an `ExportedProgram` whose ops all have rows.

    raises  Unsupported for a module that changes its state or its arguments, and for inputs and results that are no tensors
    """
    exported = _decomposed(torch, rows, exported)
    signature, kinds = exported.graph_signature, torch.export.graph_signature
    if changed := list(signature.user_inputs_to_mutate.values()):
        raise Unsupported(
            f"the module writes into its argument '{changed[0]}': a program leaves its arguments as they are",
            stage=STAGE,
            help="write into a copy, clone(), and return it",
        )
    if changed := [*signature.buffers_to_mutate.values(), *signature.parameters_to_mutate.values()]:
        raise Unsupported(
            f"the module changes {changed[0]}: a program has no state",
            stage=STAGE,
            help="module.eval() keeps running statistics as they are; or return the new value, and give it at the next call",
        )
    nodes = [node for node in exported.graph.nodes if node.op == "placeholder"]
    placeholders = list[Placeholder]()
    for node, spec in zip(nodes, signature.input_specs, strict=True):
        match spec.kind:
            case kinds.InputKind.PARAMETER | kinds.InputKind.BUFFER:
                holder = exported.state_dict if spec.persistent is not False else exported.constants
                kind = "state" if spec.persistent is not False else "constant"
                placeholders.append(Placeholder(kind, spec.target, holder[spec.target], True))
            case kinds.InputKind.TOKEN:
                placeholders.append(Placeholder("token", node.name, None, False))
            case kinds.InputKind.CONSTANT_TENSOR:
                placeholders.append(Placeholder("constant", spec.target, exported.constants[spec.target], True))
            case kinds.InputKind.USER_INPUT:
                value = node.meta.get("val")
                if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
                    raise Unsupported(
                        f"argument '{node.name}' is a number with a Dim: only sizes of tensors can be unknown",
                        stage=STAGE,
                        help="give it as a tensor without axes, or leave its Dim out: the program is then for its value",
                    )
                is_tensor = isinstance(value, torch.Tensor)
                placeholders.append(Placeholder("argument", node.name, None if is_tensor else value, is_tensor))
            case _:
                raise Unsupported(f"input '{node.name}' of the module is a {spec.kind.name}, no tensor", stage=STAGE)
    outputs = tuple(_output(torch, spec.arg) for spec in signature.output_specs)
    return TorchGraph(torch, jax, rows, exported, tuple(placeholders), outputs)


def _output(torch: ModuleType, argument: Any) -> tuple[str, Any]:
    match type(argument).__name__:
        case "TokenArgument":
            return "token", None
        case "TensorArgument":
            return "array", None
        case "SymIntArgument":
            return "size", None
        case "ConstantArgument":
            return "value", argument.value
        case other:
            raise Unsupported(f"result '{argument.name}' of the module is a {other}, no tensor", stage=STAGE)


def _decomposed(torch: ModuleType, rows: Rows, exported: Any) -> Any:
    """The exported program without writes in place, and with no op that has a decomposition but no row."""
    default, table = torch.export.default_decompositions(), dict[Any, Any]()
    for _ in range(_DECOMPOSITIONS):
        names = set(table)  # PyTorch takes some out of the table
        try:
            exported = exported.run_decompositions(table)
        except Exception as error:
            said = ", ".join(sorted(str(target).removesuffix(".default") for target in names)) or "the module"
            raise Unsupported(f"PyTorch does not decompose {said}: {_said(error)}", stage=STAGE) from error
        targets = {
            node.target
            for module in exported.graph_module.modules()
            if hasattr(module, "graph")
            for node in module.graph.nodes
            if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
        }
        missing = [target for target in targets if rows.of(target) is None]
        table = {target: default[target] for target in missing if target in default}
        table |= torch._decomp.get_decompositions([target for target in missing if target not in table])
        left = [target for target in missing if target not in table and not rows.is_random(target)]
        table |= {target: found for target in left if (found := _by_others(torch, target)) is not None}
        if not table or set(table) == names:
            break
    return exported


def _by_others(torch: ModuleType, op: Any) -> Any:
    """How PyTorch computes an op by others, as those on lists and of quantized graphs; None where each device does it by itself."""
    key = torch._C.DispatchKey.CompositeExplicitAutograd
    takes_tensors = any("Tensor" in str(argument.type) for argument in op._schema.arguments)
    if not (takes_tensors and torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key.name)):
        return None

    def decomposed(*arguments: Any, **keywords: Any) -> Any:
        try:
            return op._op_dk(key, *arguments, **keywords)
        except Exception:  # it asks for data: the op stays, and is refused with its place
            return NotImplemented

    return decomposed


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\b[A-Za-z_]\w*", lambda found: names.get(found[0], found[0]), text)


# ------------------------------------------------------------------------------------------------------------------ words


def refused(node: Any, why: str, help: str = "") -> Unsupported:
    """The error for a node, with its layer and the line of the caller's code."""
    path, kind = _layer(node)
    return Unsupported(
        why,
        stage=STAGE,
        place=_place(node),
        details=(f"in the layer '{path}' ({kind})" if path else f"in {kind or 'the module'} itself",),
        help=help,
    )


def _op(node: Any) -> str:
    return str(node.target).removesuffix(".default")


def _said(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _layer(node: Any) -> tuple[str, str]:
    """The path of the innermost module that the node is from, and the name of its class; "" for the outermost."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    if not stack:
        return "", ""
    path, kind = stack[-1]
    return str(path).replace("L['self'].", ""), str(getattr(kind, "__qualname__", kind)).rpartition(".")[2]


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def _place_text(node: Any) -> str:
    """The line that `_place` finds as a location of MLIR; "" without one."""
    found = _frame(node)
    return f'"{found[2]}"("{found[0]}":{found[1]}:1)' if found else ""


def _place(node: Any) -> Place | None:
    if (found := _frame(node)) is None:
        return None
    text = linecache.getline(found[0], int(found[1])).rstrip()
    return Place(found[0], int(found[1]), len(text) - len(text.lstrip()) + 1, len(text) + 1, text)


def _frame(node: Any) -> tuple[str, str, str] | None:
    """File, line and function of the innermost line of the caller's code that made a node, outside PyTorch."""
    frames, pytorch = _FRAME.findall(node.meta.get("stack_trace") or ""), Path(getfile(type(node))).parents[1]
    for file, line, function in reversed(frames):
        if not file.startswith("<") and not any(map(Path(file).is_relative_to, (pytorch, Path(__file__).parents[1]))):
            return file, line, function
    return None
