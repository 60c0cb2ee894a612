"""Lowers `hlo` on tensors to `lmhlo` on buffers: each op writes its result into a buffer that is allocated before it.

    hlo.computation @main entry {                        func.func @main(%x: memref<?x4xf32, "gpu">) -> memref<?x4xf32, "gpu"> {
      %x = hlo.parameter 0 : tensor<?x4xf32>               %n = memref.dim %x, %c0
      %y = hlo.abs %x : tensor<?x4xf32>            ->      %y = memref.alloc(%n) : memref<?x4xf32, "gpu">
      hlo.return %y                                        lmhlo.abs %x -> %y
    }                                                      return %y }

A buffer is in the memory of the device that runs its op (attribute `disc.device`, by default "gpu"). Sizes that the type leaves unknown
are code: `result_sizes`; as text over the program's symbols they are in the attribute `disc.sizes` (`buffer_sizes`), from which later
passes know which sizes are equal. `get_dimension_size` becomes a `memref.dim` that is stored; tuples are lists of buffers without an op;
loops and branches inline the computations that they run into their regions. Computations that ops apply per element stay, called by symbol.

Ownership: a block owns the buffers that are allocated in it, those that its loops and branches return, and a loop's body those that
it carries. It frees owned buffers that it does not yield, after its last op (`disc-buffer-optimization` frees them earlier). A yielded or
returned buffer must be owned, and yielded once; others are copied, so that no result is an argument, or another result. Arguments that
the caller donates (`tf.aliasing_output`, `jax.buffer_donor`, as JAX writes it) are the entry's own: attribute `disc.donated`.

Not supported: calls (run `disc-inliner` first), fusions of HLO, tokens, results that are tuples of tuples.
Source: seed document, "DHloLegalizeToLhlo"; docs/reference/4 1.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TupleType,
    UnitAttr,
    i1,
    i32,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.hlo.base import HloOp, integers
from xla_emitters.dialects.hlo.computation import (
    ComputationOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    find_computation,
)
from xla_emitters.dialects.hlo.constant import ConstantOp
from xla_emitters.dialects.hlo.contractions import ContractingOp
from xla_emitters.dialects.hlo.dynamic_shape_ops import GetDimensionSizeOp
from xla_emitters.dialects.hlo.elementwise import CopyOp
from xla_emitters.dialects.hlo.placement import DEVICE, GPU, HOST, devices_of
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.types import as_array, is_array, leaf_types, tuple_types
from xla_emitters.dialects.lmhlo import DONATED, buffer_type, on_buffers, tensor_of
from xla_emitters.dialects.mlir import arith, func, memref
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dynamic.buffers.buffer_sizes import SIZES, declared_sizes, sizes_attribute
from xla_emitters.dynamic.buffers.index_code import IndexCode, Number
from xla_emitters.dynamic.buffers.result_sizes import result_sizes
from xla_emitters.dynamic.sizes import SizeNames, sizes_of
from xla_emitters.graph.entry import leaves_of_element
from xla_emitters.graph.inlining import erase_unused
from xla_emitters.rewrite.kernel_pass import KernelPass, refusal

NAME = "disc-legalize-to-lhlo"
Leaves = list[SSAValue]
"""The buffers of a value: one, or one for each array of a tuple."""


class DiscLegalizeToLhloPass(KernelPass):
    """See the file's head. On a module of the `hlo` dialect."""

    name = NAME

    def apply_to(self, op: ModuleOp) -> None:
        for computation in list(op.ops):
            if isinstance(computation, ComputationOp) and computation.is_entry:
                entry = _function(computation, SizeNames(sizes_of(op)))
                Rewriter.insert_op(entry, InsertPoint.before(computation))
                Rewriter.erase_op(computation)
        erase_unused(op, [found for found in op.ops if isinstance(found, ComputationOp)])


def _function(entry: ComputationOp, names: SizeNames) -> func.FuncOp:
    """The entry as a function of buffers; `names` gives the sizes of its values."""
    parameters = entry.parameters
    types = [_buffers(parameter) for parameter in parameters]
    block = Block(arg_types=[ir_type for leaves in types for ir_type in leaves])
    arguments = iter(block.args)
    values = dict[SSAValue, Leaves]()
    for parameter, leaves in zip(parameters, types, strict=True):
        values[parameter.result] = [next(arguments) for _ in leaves]
        for leaf in values[parameter.result]:
            leaf.name_hint = parameter.result.name_hint
    code = IndexCode(QuickBuilder(InsertPoint.at_end(block)), entry.location)
    donated = [is_donated(parameter) for parameter in parameters for _ in leaf_types(parameter.result.type)]
    owned = [argument for argument, is_own in zip(block.args, donated, strict=True) if is_own]
    body = _Body(entry, code, values, names, owned)
    roots = body.instructions()
    roots = body.yielded(roots, [root.type for root in roots])
    code.builder.insert(func.ReturnOp(*roots))
    sizes = [sizes for parameter in parameters for sizes in _sizes(names, parameter.result)]
    said = [
        ({SIZES: shape} if shape else {}) | ({DONATED: UnitAttr()} if is_own else {})
        for shape, is_own in zip(sizes, donated, strict=True)
    ]
    return func.FuncOp(
        entry.sym_name.data,
        ([argument.type for argument in block.args], [root.type for root in roots]),
        Region(block),
        arg_attrs=ArrayAttr(map(DictionaryAttr, said)) if any(said) else None,
    )


def is_donated(parameter: ParameterOp) -> bool:
    """Whether the caller donates the argument's memory, by JAX's attributes: to a certain result, or to any."""
    to_any = parameter.attributes.get("jax.buffer_donor")
    return "tf.aliasing_output" in parameter.attributes or to_any == StringAttr("true")


def _sizes(names: SizeNames, value: SSAValue) -> list[ArrayAttr[StringAttr] | None]:
    """The `disc.sizes` of each array of a value; None for a static type."""
    leaves = leaf_types(value.type)
    found = names.of(value) or [(None,) * as_array(leaf).get_num_dims() for leaf in leaves]
    return [
        sizes_attribute(texts) if any(size < 0 for size in as_array(leaf).get_shape()) else None
        for leaf, texts in zip(leaves, found, strict=True)
    ]


def _arrays(op: HloOp, ir_type: Attribute) -> tuple[Attribute, ...]:
    """The types of the arrays of a value. raises Unsupported for tokens and other types."""
    leaves = leaf_types(ir_type)
    if not all(map(is_array, leaves)):
        raise refusal(NAME, op, f"'{op.opcode}' has a value without an array ({ir_type}), which no buffer holds")
    return leaves


def _buffers(op: HloOp) -> list[Attribute]:
    """The types of the buffers that hold the op's value."""
    arrays = [as_array(leaf) for leaf in _arrays(op, op.result.type)]
    return [
        buffer_type(array.element_type, array.get_shape(), device)
        for array, device in zip(arrays, _devices(op, len(arrays)), strict=True)
    ]


def _devices(op: HloOp, count: int) -> list[str]:
    """The device of each of `count` arrays of the op's value: one for all, or a list of them."""
    devices = devices_of(op) or (GPU,)
    return list(devices) if len(devices) == count else [devices[0]] * count


class _Body:
    """Writes the instructions of a computation into one block.

    values  the buffers of tensors; at first, those of the computation's parameters
    names   gives the sizes of values
    owned   buffers that this block owns: it frees or yields them
    """

    def __init__(
        self,
        computation: ComputationOp,
        code: IndexCode,
        values: dict[SSAValue, Leaves],
        names: SizeNames,
        owned: Sequence[SSAValue],
    ) -> None:
        self.computation = computation
        self.code = code
        self.values = values
        self.names = names
        self.owned = dict.fromkeys(owned)

    def instructions(self) -> Leaves:
        """Writes all instructions; returns the buffers of the root."""
        for op in self.computation.instructions:
            self.code.location = op.location
            self._instruction(op)
        return self.values[self.computation.root]

    def yielded(self, leaves: Leaves, types: Sequence[Attribute]) -> Leaves:
        """The buffers that the block yields: owned ones, each once, and copies of all others; frees its other buffers.

        types  required types: a buffer in another memory is copied
        """
        given = dict[SSAValue, None]()
        for leaf, ir_type in zip(leaves, types, strict=True):
            is_free = leaf in self.owned and leaf not in given and leaf.type == ir_type
            given[leaf if is_free else self._copy(leaf, ir_type)] = None
        for buffer in self.owned:
            if buffer not in given:
                self.code.builder.insert(memref.DeallocOp.build(operands=[buffer]))
        return list(given)

    # ------------------------------------------------------------------------------------------------- instructions

    def _instruction(self, op: HloOp) -> None:
        inputs = [self.values[operand] for operand in op.operands]
        match op:
            case ParameterOp():
                return
            case TupleOp():
                found = [leaf for leaves in inputs for leaf in leaves]
            case GetTupleElementOp():
                first, count = leaves_of_element(op)
                found = inputs[0][first : first + count]
            case GetDimensionSizeOp():
                found = [self._dimension_size(op, inputs[0][0])]
            case ConstantOp() if isinstance(op.result.type, TupleType):
                raise self._refuse(op, "a constant that is a tuple")
            case RuleOp() if op.opcode in PASSED_THROUGH:
                found = inputs[0]
            case RuleOp() if op.opcode == "while":
                found = self._while(op, inputs)
            case RuleOp() if op.opcode == "conditional":
                found = self._conditional(op, inputs)
            case _:
                found = self._buffer_op(op, inputs)
        self.values[op.result] = found

    def _dimension_size(self, op: GetDimensionSizeOp, buffer: SSAValue) -> SSAValue:
        code = self.code
        size = code.value(code.dim(buffer, integers(op.dimensions)[0]))
        held = self._allocate(buffer_type(i32, (), HOST), [])
        held.name_hint = op.result.name_hint
        code.builder.insert(memref.StoreOp.get(code.insert(arith.IndexCastOp(size, i32)), held, []))
        return held

    def _buffer_op(self, op: HloOp, inputs: Sequence[Leaves]) -> Leaves:
        if isinstance(op, ContractingOp):
            _ = op.held  # refuses types and algorithms here that would be refused when the program runs
        kin = on_buffers(type(op))
        if kin is None or any(len(leaves) != 1 for leaves in inputs):
            # Imported here: most programs have no such op.
            from xla_emitters.dialects.hlo.library_calls import communication

            reason = communication(op) or "it has no counterpart on buffers"
            why = f"is not taken: {reason}" if kin is None else "takes a tuple, which is not a buffer"
            raise self._refuse(op, why)
        parts = tuple_types(op.result.type)
        if any(isinstance(part, TupleType) for part in parts) or (
            isinstance(op.result.type, TupleType) and len(parts) == 1
        ):
            raise self._refuse(op, "returns a tuple of one, or of tuples")
        operands = [leaves[0] for leaves in inputs]
        outputs = Leaves()
        for leaf, (ir_type, said) in enumerate(zip(_buffers(op), _sizes(self.names, op.result), strict=True)):
            made = self._allocate(ir_type, result_sizes(op, operands, leaf, self.code), said)
            made.name_hint = op.result.name_hint
            outputs.append(made)
        self.code.builder.insert(kin.of(op, operands, outputs))
        return outputs

    def _refuse(self, op: HloOp, why: str) -> Exception:
        opcode = op.opcode
        help = "run disc-inliner first" if opcode == "call" else ""
        return refusal(NAME, op, f"'{opcode}' (instruction %{op.instruction_name.data}) {why}", help)

    def _allocate(
        self, ir_type: Attribute, sizes: Sequence[Number], said: ArrayAttr[StringAttr] | None = None
    ) -> SSAValue:
        """A buffer of this block; `sizes` are all sizes of the array, `said` is its `disc.sizes`."""
        known = tensor_of(ir_type).get_shape()
        unknown = [self.code.value(size) for size, static in zip(sizes, known, strict=True) if static < 0]
        alloc = memref.AllocOp(unknown, [], ir_type)
        if said is not None:
            alloc.attributes[SIZES] = said
        made = self.code.insert(alloc)
        self.code.allocated(made, sizes)
        self.owned[made] = None
        return made

    def _copy(self, buffer: SSAValue, ir_type: Attribute) -> SSAValue:
        """A copy that the block owns; its device is set later, by `disc-placement-fixer`."""
        held = tensor_of(buffer.type)
        sizes = [self.code.dim(buffer, dim) for dim in range(held.get_num_dims())]
        made = self._allocate(ir_type, sizes, declared_sizes(buffer))
        made.name_hint = buffer.name_hint
        operand = Block(arg_types=[held]).args[0]
        copy = CopyOp([operand], held, f"{buffer.name_hint or 'buffer'}.copy")
        copy.location = self.code.location
        kin = on_buffers(CopyOp)
        assert kin is not None
        self.code.builder.insert(kin.of(copy, [buffer], [made]))
        return made

    # ------------------------------------------------------------------------------------------- loops and branches

    def _while(self, op: RuleOp, inputs: Sequence[Leaves]) -> Leaves:
        """Carried values become arguments of the loop's regions; operands that every iteration reads are captured from outside."""
        (condition,), (body,) = op.symbols("condition"), op.symbols("body")
        # The loop owns its buffers, so they are copies: `disc-lower-to-buffer-alias` removes the unnecessary ones.
        types = _buffers(op)
        carried = [self._copy(leaf, ir_type) for leaf, ir_type in zip(inputs[0], types, strict=True)]
        same = [leaf for leaves in inputs[1:] for leaf in leaves]

        def holds(inner: _Body) -> None:
            (predicate,) = inner.instructions()
            value = inner.code.insert(memref.LoadOp.get(predicate, []))
            inner.yielded([], [])
            inner.code.builder.insert(lmhlo.ConditionOp(operands=[value]))

        regions = [
            self._region(op, condition, types, holds, owns=False, captured=same),
            self._region(op, body, types, _ending(types), owns=True, captured=same),
        ]
        return self._taken(op, lmhlo.WhileOp(operands=[carried], result_types=[types], regions=regions), carried)

    def _conditional(self, op: RuleOp, inputs: Sequence[Leaves]) -> Leaves:
        """A pred selects the first branch if true; a number selects the branch of that number, or the last."""
        selector = self.code.insert(memref.LoadOp.get(inputs[0][0], []))
        branches = [(callee.symbol, leaves) for callee, leaves in zip(op.callees(), inputs[1:], strict=True)]
        if selector.type == i1:
            selector = self.code.insert(arith.ExtUIOp(selector, i32))
            branches.reverse()
        types = _buffers(op)
        regions = [
            self._region(op, symbol, [], _ending(types), owns=False, captured=leaves) for symbol, leaves in branches
        ]
        return self._taken(op, lmhlo.CaseOp(operands=[selector], result_types=[types], regions=[regions]), [])

    def _taken(self, op: RuleOp, made: lmhlo.WhileOp | lmhlo.CaseOp, given: Leaves) -> Leaves:
        """Inserts an op with regions: it consumes the buffers `given`, and its results belong to the block."""
        made.attributes |= {name: value for name, value in op.attributes.items() if name == DEVICE}
        if any(said := _sizes(self.names, op.result)):
            made.attributes[SIZES] = ArrayAttr(sizes or ArrayAttr[StringAttr]([]) for sizes in said)
        made.location = op.location
        self.code.builder.insert(made)
        for buffer in given:
            self.owned.pop(buffer)
        for result in made.results:
            result.name_hint = op.result.name_hint
            self.owned[result] = None
        return list(made.results)

    def _region(
        self,
        op: RuleOp,
        symbol: SymbolRefAttr,
        types: Sequence[Attribute],
        end: Callable[[_Body], None],
        *,
        owns: bool,
        captured: Sequence[SSAValue] = (),
    ) -> Region:
        """A computation as a region.

        types     of the region's arguments, which are the computation's first parameters
        captured  outside buffers for the computation's other parameters
        owns      whether the region owns, and so frees, its arguments
        """
        computation = find_computation(op, symbol)
        block = Block(arg_types=types)
        values = dict[SSAValue, Leaves]()
        leaves = iter([*block.args, *captured])
        for parameter in computation.parameters:
            values[parameter.result] = [next(leaves) for _ in _arrays(parameter, parameter.result.type)]
        builder = QuickBuilder(InsertPoint.at_end(block))
        end(_Body(computation, self.code.inside(builder), values, self.names, owned=block.args if owns else ()))
        return Region(block)


def _ending(types: Sequence[Attribute]) -> Callable[[_Body], None]:
    """Ends a region that yields buffers of these types."""

    def end(inner: _Body) -> None:
        roots = inner.yielded(inner.instructions(), types)
        inner.code.builder.insert(lmhlo.TerminatorOp(operands=[roots]))

    return end


PASSED_THROUGH = frozenset(("opt-barrier", "domain"))
"""Ops whose value is their operand's."""
