"""The code of one element: a function per subgraph, from its indices to the element of its root.

    func.func private @f_add(%arg0: tensor<20x40xf32>, %i: index, %j: index) -> f32 {
      %extracted = tensor.extract %arg0[%i, %j]               a parameter: read
      %0 = xla_gpu.pure_call @f_log(%arg0, %j, %i) : ...      an operand of another subgraph: called
      %1 = arith.addf %extracted, %0                          an op: emit_element of its class, at the same indices
      return %1
    }

The elements of heroes are the last arguments of an epilogue's function, which uses them wherever a hero is read.
Every (instruction, indices) is emitted once per block; values of the same or an enclosing block are reused. Constants and index
computations are shared too, with constants at the top of the function. Chains of elementwise ops and of moves are walked with a worklist,
not by recursion: 5,000 ops in a row do not exceed Python's stack. Every op carries the location of its HLO instruction.
Source: seed document, "Elemental emission", "Subgraph functions"; docs/reference/1 5.5-5.8.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeAlias

from xdsl.builder import Builder, InsertOpInvT
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    LocationAttr,
    TensorType,
    UnknownLoc,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects import build
from xla_emitters.dialects.attributes import NO_ENTRIES, array, function_type, tensor_type
from xla_emitters.dialects.hlo.base import Emit, EmitStep, HloOp, OperationT, owner_of
from xla_emitters.dialects.hlo.computation import ParameterOp, TupleOp
from xla_emitters.dialects.hlo.elementwise import ElementwiseOp
from xla_emitters.dialects.hlo.shape_ops import MoveOp, same_place
from xla_emitters.dialects.hlo.types import (
    as_array,
    default_order,
    dims_of,
    element_of,
    leaf_types,
    minor_to_major,
)
from xla_emitters.dialects.locations import UNKNOWN, locate
from xla_emitters.dialects.mlir import arith, func, scf, tensor
from xla_emitters.dialects.mlir.llvm import INTERNAL
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dialects.ranges import RANGE_ATTR, range_attr
from xla_emitters.dialects.xla_gpu import INDEX, ApplyIndexingOp, PureCallOp
from xla_emitters.emitters.partitioner import PartitionedComputation, Subgraph
from xla_emitters.support.late_dataclass import dataclass

INDEX_NAMES = "ijklmn"


def kernel_tensor(hlo_type: Attribute) -> TensorType[Attribute]:
    """The tensor type of an HLO array in a kernel: its storage element type, and a layout other than row major as a dense encoding.

    >>> from xla_emitters.dialects.hlo.types import array_type
    >>> from xla_emitters.dtypes import dtype
    >>> str(kernel_tensor(array_type(dtype("pred").ir_type, (8, 64), (0, 1))))
    'tensor<8x64xi8, dense<[0, 1]> : tensor<2xi64>>'
    """
    array = as_array(hlo_type)
    order = minor_to_major(array)
    storage = element_of(array).storage_type
    if order == default_order(len(order)):
        return tensor_type(storage, array.get_shape())
    return tensor_type(storage, array.get_shape(), _dense(order))


@lru_cache(256)
def _dense(order: tuple[int, ...]) -> DenseIntOrFPElementsAttr[Any]:
    return DenseIntOrFPElementsAttr.from_list(TensorType(i64, [len(order)]), order)


@lru_cache(1024)
def _in_range(last: int) -> DictionaryAttr:
    """The attributes of an argument that is an index of at most `last`."""
    return DictionaryAttr({RANGE_ATTR: range_attr(0, last)})


def result_types(root: HloOp) -> list[Attribute]:
    """Storage types of one element of `root`: one type per array in the result."""
    return [element_of(leaf).storage_type for leaf in leaf_types(root.result.type)]


def element_types(subgraph: Subgraph) -> list[Attribute]:
    """Storage types of the results of a subgraph's function: the elements of its roots, in their order."""
    return [result for root in subgraph.roots for result in result_types(root)]


# ------------------------------------------------------------------------------------------- functions


def declare(subgraph: Subgraph, parameters: Sequence[ParameterOp], *, scalars: bool = False) -> func.FuncOp:
    """The function of a subgraph, with an empty body. Arguments: one per parameter of the computation, one index per dimension.

    An epilogue also has one argument per element of each hero, after these.
    scalars  whether parameters are passed as elements (for a computation called per element) instead of as tensors
    """
    types = [parameter.result.type for parameter in parameters]
    tensors = [element_of(hlo_type).storage_type if scalars else kernel_tensor(hlo_type) for hlo_type in types]
    dims = subgraph.index_dims
    injected = [result for hero in subgraph.injected for result in result_types(hero)]
    arguments = [*tensors, *([INDEX] * len(dims)), *injected]
    function = func.FuncOp(
        subgraph.name,
        function_type(arguments, element_types(subgraph)),
        Region(Block(arg_types=arguments)),
        visibility="private",
        arg_attrs=array(
            [
                *([NO_ENTRIES] * len(tensors)),
                *(_in_range(size - 1) for size in dims),
                *([NO_ENTRIES] * len(injected)),
            ]
        ),
    )
    function.attributes["llvm.linkage"] = INTERNAL
    if subgraph.moves_only:
        function.attributes["no_compute"] = BoolAttr.from_bool(True)
    for i, argument in enumerate(function.body.block.args):
        index = i - len(tensors)
        if 0 <= index < len(dims):
            argument.name_hint = INDEX_NAMES[index] if index < len(INDEX_NAMES) else f"i{index}"
        else:
            argument.name_hint = f"arg{i}"
        argument.location = parameters[i].location if index < 0 else subgraph.root.location
    function.location = subgraph.root.location
    return function


def emit_subgraph(
    subgraph: Subgraph,
    partitioned: PartitionedComputation,
    function: func.FuncOp,
    called: Mapping[str, PartitionedComputation] = MappingProxyType({}),
) -> None:
    """Fills `function`, as `declare` made it, with the code of one element of each of the subgraph's roots.

    called   the computations that instructions call for each element, by name
    raises   Unsupported, with its place, for an instruction without code
    """
    block = function.body.block
    tensors = len(partitioned.computation.parameters)
    indices = block.args[tensors : tensors + len(subgraph.index_dims)]
    emission = _Emission(subgraph, partitioned, block.args[:tensors], FunctionBuilder(block), called)
    given = list(block.args[tensors + len(indices) :])
    for hero in subgraph.injected:
        count = len(result_types(hero))
        emission.injected[hero], given = tuple(given[:count]), given[count:]
    maps = subgraph.epilogue.root_maps if subgraph.epilogue else (None,)
    values = list[SSAValue]()
    for root, step in zip(subgraph.roots, maps, strict=True):
        own = indices if step is None else emission.at(root, step, indices)
        values += emission.element(root, own)
    emission.builder.insert(func.ReturnOp(*values))


def emit_functions(
    entry: func.FuncOp,
    partitioned: PartitionedComputation,
    called: Mapping[str, PartitionedComputation] = MappingProxyType({}),
) -> list[func.FuncOp]:
    """The functions that the finished `entry` calls, directly or indirectly. Functions that no longer have a caller are not emitted.

    called   the computations that instructions call for each element, by name
    raises   Unsupported, with its place, for an instruction without code
    """
    owners = {
        subgraph.name: (subgraph, owner, owner is not partitioned)
        for owner in (partitioned, *called.values())
        for subgraph in (*owner.subgraphs, *owner.epilogues)
    }
    made = dict[str, func.FuncOp]()
    pending = [entry]
    while pending:
        for call in [op for op in pending.pop().walk() if isinstance(op, PureCallOp)]:
            if call.callee in made:
                continue
            subgraph, owner, scalars = owners[call.callee]
            function = declare(subgraph, owner.computation.parameters, scalars=scalars)
            emit_subgraph(subgraph, owner, function, called)
            made[call.callee] = function
            pending.append(function)
    return [made[name] for name in owners if name in made]


@dataclass(eq=False)
class FunctionBuilder(QuickBuilder):
    """Inserts into one function: sets every op's location, and reuses equal constants and index computations.

    location   the location of ops without one of their own
    """

    location: LocationAttr = field(default_factory=UnknownLoc)

    def __init__(self, block: Block, location: LocationAttr | None = None):
        super().__init__(InsertPoint.at_end(block))
        self.location = location or UNKNOWN
        self._top = block
        self._known: dict[tuple[object, ...], list[Operation]] = {}
        self.operation_insertion_handler.append(lambda op: locate(op, self.location))

    def insert(self, op: InsertOpInvT, insertion_point: InsertPoint | None = None) -> InsertOpInvT:
        if insertion_point is not None or not isinstance(op, arith.ConstantOp | ApplyIndexingOp):
            return super().insert(op, insertion_point)
        key = (op.name, *op.operands, *op.properties.values())
        for known in self._known.setdefault(key, []):
            if encloses(known.parent, self.insertion_point.block):
                # A duplicate without users would remain a user of its operands, and no pass could remove those.
                op.erase()
                return known  # pyright: ignore[reportReturnType]
        self._known[key].append(op)
        return super().insert(op, InsertPoint.at_start(self._top) if isinstance(op, arith.ConstantOp) else None)

    def call(self, callee: Subgraph, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The results of a subgraph's function: an element of each array of its roots."""
        return self.insert(PureCallOp(callee.name, arguments, element_types(callee))).results

    def write(
        self, values: Iterable[SSAValue], tensors: Iterable[SSAValue], places: Iterable[Sequence[SSAValue]]
    ) -> list[SSAValue]:
        """Inserts a value into each tensor at an index; returns the new tensors."""
        inserted = (
            self.insert(tensor.InsertOp(value, target, list(place)))
            for value, target, place in zip(values, tensors, places, strict=True)
        )
        return [insertion.result for insertion in inserted]

    def branch(
        self, condition: SSAValue, types: Sequence[Attribute], then: Emit, otherwise: Emit
    ) -> Sequence[SSAValue]:
        """`scf.if`: the values of one of two bodies."""
        regions = Region(Block()), Region(Block())
        branch = self.insert(scf.IfOp(condition, types, *regions))
        for region, emit in zip(regions, (then, otherwise), strict=True):
            with self.inside(InsertPoint.at_end(region.block)):
                self.insert(scf.YieldOp(*emit()))
        return branch.results

    @contextmanager
    def inside(self, point: InsertPoint) -> Generator[None]:
        """Within the context, ops are inserted at `point`, in a region of the op at the current point."""
        outer, self.insertion_point = self.insertion_point, point
        try:
            yield
        finally:
            self.insertion_point = outer

    @contextmanager
    def located(self, location: LocationAttr) -> Generator[None]:
        """Within the context, new ops have `location`."""
        outer, self.location = self.location, location
        try:
            yield
        finally:
            self.location = outer


def encloses(outer: Block | None, block: Block | None) -> bool:
    """Whether values defined in `outer` can be used in `block`: it is the same block, or contains it."""
    while block is not None and block is not outer:
        block = block.parent_block()
    return block is not None and outer is not None


# ------------------------------------------------------------------------------------------- elements


Key: TypeAlias = tuple[HloOp, tuple[SSAValue, ...]]
"""An instruction, and the indices of one of its elements."""


@dataclass(eq=False)
class _Emission:
    """The state of filling one function."""

    subgraph: Subgraph
    partitioned: PartitionedComputation
    arguments: Sequence[SSAValue]
    builder: FunctionBuilder
    called: Mapping[str, PartitionedComputation]
    injected: dict[HloOp, tuple[SSAValue, ...]] = field(default_factory=dict[HloOp, tuple[SSAValue, ...]])
    known: dict[Key, list[tuple[Block, tuple[SSAValue, ...]]]] = field(
        default_factory=dict[Key, list[tuple[Block, tuple[SSAValue, ...]]]]
    )

    def element(self, op: HloOp, indices: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
        """The element of `op` at `indices`: one value per array in its result. Emits it if that has not been done yet."""
        pending = [(op, tuple(indices))]
        needed = dict[Key, list[Key]]()
        while pending:
            current = pending[-1]
            if self._lookup(*current) is not None:
                pending.pop()
                continue
            if current not in needed:
                cluster = self._elementwise_cluster(*current)
                needed |= {
                    key: self._needed_first(*key)
                    for key in cluster
                    if key == current or isinstance(key[0], ElementwiseOp)
                }
                pending += cluster[1:]
                if len(cluster) > 1:
                    continue
            if missing := [key for key in needed[current] if self._lookup(*key) is None]:
                pending += reversed(missing)
            else:
                self._emit(*current)
                pending.pop()
        values = self._lookup(op, tuple(indices))
        assert values is not None
        return values

    def at(self, op: HloOp, indexing_map: IndexingMap, indices: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The results of `indexing_map` at `indices`: the index at which `op` is read."""
        with self.builder.located(op.location):
            return build.apply_indexing(self.builder, indexing_map, indices)

    def _lookup(self, op: HloOp, indices: tuple[SSAValue, ...]) -> tuple[SSAValue, ...] | None:
        if op in self.injected:
            return self.injected[op]
        for block, values in self.known.get((op, indices), ()):
            if encloses(block, self.builder.insertion_point.block):
                return values
        return None

    def _elementwise_cluster(self, op: HloOp, indices: tuple[SSAValue, ...]) -> list[Key]:
        """`op` and, if it is elementwise, its operands and those of its elementwise operands at the same indices: breadth first, each op's
        last operand first. Emitting them from the end gives XLA's order of code, on which LLVM's scheduling of loads depends.
        """
        reached = dict.fromkeys([op])
        waiting = deque([op])
        while waiting:
            current = waiting.popleft()
            if current not in self.subgraph.members or not isinstance(current, ElementwiseOp):
                continue
            for operand in reversed(current.operands):
                owner = owner_of(operand)
                is_here = owner in self.subgraph.members and dims_of(operand) == dims_of(current.result)
                if is_here and owner not in reached and self._lookup(owner, indices) is None:
                    reached[owner] = None
                    waiting.append(owner)
        return [(reached_op, indices) for reached_op in reached]

    def _needed_first(self, op: HloOp, indices: tuple[SSAValue, ...]) -> list[Key]:
        """The elements that `op`'s code always reads. Emitting them before `op` avoids recursion."""
        if op not in self.subgraph.members or not isinstance(op, ElementwiseOp | MoveOp):
            return []
        needed, steps = list[Key](), op.output_to_input()
        if any(step.num_symbols for step in steps):
            return []
        for operand, step in zip(op.operands, steps, strict=True):
            with self.builder.located(op.location):
                needed.append((owner_of(operand), tuple(build.apply_indexing(self.builder, step, indices))))
        return needed

    def _emit(self, op: HloOp, indices: tuple[SSAValue, ...]) -> None:
        with self.builder.located(op.location):
            if op not in self.subgraph.members:
                values = self._call(op, indices)
            elif isinstance(op, ParameterOp):
                values = (self._parameter(self.arguments[op.number.value.data], op, indices),)
            elif isinstance(op, TupleOp):
                values = self._tuple(op, indices)
            else:
                values = tuple(op.emit_element(_Element(self, op, indices)))
        block = self.builder.insertion_point.block
        self.known.setdefault((op, indices), []).append((block, values))

    def _parameter(self, argument: SSAValue, op: ParameterOp, indices: tuple[SSAValue, ...]) -> SSAValue:
        """An element of a tensor. In a computation called per element the argument is the element itself."""
        if not isinstance(argument.type, TensorType):
            return argument
        read = tensor.ExtractOp(argument, list(indices), result_types(op)[0])
        read.result.name_hint = "extracted"  # the name of the later load
        return self.builder.insert(read).result

    def _call(self, op: HloOp, indices: tuple[SSAValue, ...]) -> tuple[SSAValue, ...]:
        """An element that another function computes: a call of it."""
        return self.call(self.partitioned.subgraph_of[op], [*self.arguments, *indices])

    def call(self, callee: Subgraph, arguments: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
        return tuple(self.builder.call(callee, arguments))

    def _tuple(self, op: HloOp, indices: tuple[SSAValue, ...]) -> tuple[SSAValue, ...]:
        """An element of each array in a tuple; the indices are for the first array."""
        first = leaf_types(op.result.type)[0]
        values = list[SSAValue]()
        for operand in op.operands:
            step = same_place(first, leaf_types(operand.type)[0])
            values += self.element(owner_of(operand), build.apply_indexing(self.builder, step, indices))
        return tuple(values)


@dataclass(frozen=True, eq=False)
class _Element:
    """The `ElementContext` of one instruction at one index."""

    emission: _Emission
    op: HloOp
    indices: tuple[SSAValue, ...]

    @property
    def builder(self) -> Builder:
        return self.emission.builder

    def operand(self, i: int, indices: Sequence[SSAValue] | None = None) -> SSAValue:
        (value,) = self.elements(i, indices)
        return value

    def elements(self, i: int, indices: Sequence[SSAValue] | None = None) -> Sequence[SSAValue]:
        owner = owner_of(self.op.operands[i])
        return self.emission.element(owner, self.indices if indices is None else indices)

    def insert(self, op: OperationT, /) -> OperationT:
        return self.builder.insert(op)

    def branch(self, condition: SSAValue, then: Emit, otherwise: Emit) -> Sequence[SSAValue]:
        return self.emission.builder.branch(condition, result_types(self.op), then, otherwise)

    def loop(self, indexing_map: IndexingMap, inits: Sequence[SSAValue], body: EmitStep) -> Sequence[SSAValue]:
        def step(inner: Builder, symbols: Sequence[SSAValue], carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            with self.emission.builder.inside(inner.insertion_point):
                return body(symbols, carried)

        return build.loop_nest(self.builder, indexing_map, self.indices, inits, step)

    def call(self, computation: str, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return self.emission.call(self.emission.called[computation].root, arguments)
