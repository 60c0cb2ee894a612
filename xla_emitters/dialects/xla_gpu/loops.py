"""The `xla_gpu` dialect's ops over indexing maps and those that hold code: apply_indexing, loop, atomic_rmw, and their yield.

    %k = xla_gpu.apply_indexing #map1(%tid, %bid)[%vector_index]
    %l = xla_gpu.loop (%tid, %bid)[%vector_index] -> (%dim0, %dim1) in #map iter_args(%iter = %init) -> (tensor<4xf32>) {
      ...
      xla_gpu.yield %t : tensor<4xf32>
    }
    %u = xla_gpu.atomic_rmw %t[%i, %j] : tensor<2x3xf32> {
    ^bb0(%current : f32):
      %next = arith.addf %current, %x : f32
      xla_gpu.yield %next : f32
    }

`apply_indexing` computes the map's results; its operands are assumed to be in the map's domain.
`loop` runs its body for every value of the map's range variables for which the map's dims are in their bounds and its constraints hold;
the other iterations pass the iter args on unchanged. Block arguments: induction variables, map results, iter args.
`atomic_rmw` atomically replaces one element by the value that its body computes from the old one. If the block argument is a vector, it
replaces as many elements from there on, each atomically by itself. Import the ops from `xla_gpu.py`.
Source: seed document, "MLIR Conversion"; docs/reference/1 1.1-1.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, VectorType
from xdsl.interfaces import HasCanonicalizationPatternsInterface, HasFolderInterface
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    VarConstraint,
    base,
    lazy_traits_def,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsTerminator,
    NoMemoryEffect,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
    ReturnLike,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from xla_emitters.algebra.expression import Expr, ExprKind
from xla_emitters.algebra.interval import Interval
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.attributes import unchecked
from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.mlir.directives import Derived
from xla_emitters.dialects.mlir.scf import parse_carried, print_carried
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp, QuickOp, operands_of
from xla_emitters.dialects.ranges import KnowsRanges
from xla_emitters.dialects.xla_gpu.canonicalization import (
    Application,
    AppliesMap,
    is_simplest,
    simplest,
    simplest_loop,
    without_unused_vars,
)
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr

INDEX = IndexType()

# Names of a loop's induction variables when its map names none.
INDUCTION_NAMES = "ijklmn"


def parse_map(parser: Parser) -> IndexingMapAttr:
    """An indexing map attribute, or an alias of one."""
    start = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(attribute, IndexingMapAttr):
        parser.raise_error("expected an indexing map", start, parser.pos)
    return attribute


def comma_separated(types: Sequence[Attribute]) -> str:
    return ", ".join(str(shown) for shown in types)


def parse_operands(parser: Parser, delimiter: Parser.Delimiter) -> list[UnresolvedOperand] | None:
    """Values between brackets, or None where there are no brackets."""
    return parser.parse_optional_comma_separated_list(delimiter, parser.parse_unresolved_operand)


def print_values(printer: Printer, values: Sequence[SSAValue], brackets: str) -> None:
    """`(%a, %b)`; `brackets` is the pair of brackets."""
    printer.print_string(brackets[0])
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(brackets[1])


@op_definition
class ApplyIndexingOp(PureOp, AppliesMap, KnowsRanges, HasFolderInterface, HasCanonicalizationPatternsInterface):
    """`%r:2 = xla_gpu.apply_indexing #map(%d0, %d1)[%s0] {attributes}`: the results of a map at a point."""

    name = "xla_gpu.apply_indexing"

    indices = var_operand_def(IndexType)
    indexing_map_attr = prop_def(IndexingMapAttr)
    outs = var_result_def(IndexType)

    def __init__(
        self,
        operands: Sequence[SSAValue | Operation],
        indexing_map: IndexingMap | IndexingMapAttr,
        attributes: Mapping[str, Attribute | None] | None = None,
    ):
        if isinstance(indexing_map, IndexingMap):
            indexing_map = unchecked(IndexingMapAttr, data=indexing_map)
        super().__init__(
            operands=[operands],
            result_types=[[INDEX] * indexing_map.data.num_results],
            properties={"indexing_map_attr": indexing_map},
            attributes=attributes,
        )

    @property
    def map(self) -> IndexingMap:
        return self.indexing_map_attr.data

    def range_of_result(self, number: int) -> Interval | None:
        return self.map.result_range(number)

    @classmethod
    def parse(cls, parser: Parser) -> ApplyIndexingOp:
        map_attr = parse_map(parser)
        start = parser.pos
        dims = parse_operands(parser, parser.Delimiter.PAREN) or []
        symbols = parse_operands(parser, parser.Delimiter.SQUARE) or []
        wanted = map_attr.data
        if len(dims) != wanted.num_dims or len(symbols) != wanted.num_symbols:
            parser.raise_error(
                f"the map has {wanted.num_dims} dims and {wanted.num_symbols} symbols, "
                f"but there are {len(dims)} and {len(symbols)} operands",
                start,
                parser.pos,
            )
        attributes = parser.parse_optional_attr_dict()
        operands = [parser.resolve_operand(operand, INDEX) for operand in (*dims, *symbols)]
        return ApplyIndexingOp(operands, map_attr, attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.indexing_map_attr)
        num_dims = self.map.num_dims
        if dims := self.operands[:num_dims]:
            print_values(printer, dims, "()")
        if symbols := self.operands[num_dims:]:
            print_values(printer, symbols, "[]")
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        variables = self.map.num_dims + self.map.num_symbols
        if len(self.operands) != variables:
            raise VerifyException(f"the map has {variables} variables, but there are {len(self.operands)} operands")
        if len(self.results) != self.map.num_results:
            raise VerifyException(f"the map has {self.map.num_results} results, the op {len(self.results)}")
        if self.map.constraints:
            raise VerifyException("apply_indexing takes no map with constraints")

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        """The operands and constants that equal the results, if all results have one."""
        folded: list[SSAValue | Attribute] = []
        for result in self.map.results:
            if result.kind is ExprKind.VARIABLE:
                folded.append(self.operands[result.value])
            elif result.kind is ExprKind.CONSTANT:
                folded.append(IntegerAttr(result.value, INDEX))
            else:
                return None
        return folded

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (CanonicalizeApplyIndexing(),)


@op_definition
class YieldOp(QuickOp):
    """`xla_gpu.yield %a, %b : t, u`: the iter args of the next iteration, or the element's new value."""

    name = "xla_gpu.yield"

    arguments = var_operand_def()

    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    traits = lazy_traits_def(lambda: (IsTerminator(), ReturnLike(), Pure(), HasParent(LoopOp, AtomicRMWOp)))

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])


@op_definition
class LoopOp(QuickOp, KnowsRanges, HasCanonicalizationPatternsInterface):
    """A loop nest over the range variables of a map, with the map's domain as a bounds check. See the file's head.

    dims   one index per dim of the map, the same in all iterations
    inits  first values of the iter args
    body   one block; None makes one with its arguments and without ops
    """

    name = "xla_gpu.loop"

    dims = var_operand_def(IndexType)
    inits = var_operand_def()
    indexing_map_attr = prop_def(IndexingMapAttr)
    outs = var_result_def()
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp), RecursiveMemoryEffect(), RecursivelySpeculatable())

    def __init__(
        self,
        dims: Sequence[SSAValue | Operation],
        inits: Sequence[SSAValue | Operation],
        indexing_map: IndexingMap | IndexingMapAttr,
        body: Region | None = None,
        attributes: Mapping[str, Attribute | None] | None = None,
    ):
        if isinstance(indexing_map, IndexingMap):
            indexing_map = IndexingMapAttr(indexing_map)
        carried = [SSAValue.get(init).type for init in inits]
        if body is None:
            body = Region(self.make_block(indexing_map.data, carried))
        super().__init__(
            operands=[dims, inits],
            result_types=[carried],
            properties={"indexing_map_attr": indexing_map},
            attributes=attributes,
            regions=[body],
        )

    @staticmethod
    def make_block(indexing_map: IndexingMap, carried: Sequence[Attribute]) -> Block:
        """An empty body for a loop over `indexing_map` that carries values of the types `carried`."""
        num_ivs, num_results = len(indexing_map.range_vars), indexing_map.num_results
        block = Block(arg_types=[INDEX] * (num_ivs + num_results) + list(carried))
        for number, argument in enumerate(block.args):
            if number < num_ivs:
                name = indexing_map.range_vars[number].name or INDUCTION_NAMES[min(number, len(INDUCTION_NAMES) - 1)]
            elif number < num_ivs + num_results:
                name = f"dim{number - num_ivs}"
            else:
                name = "iter"
            argument.name_hint = name
        return block

    @property
    def map(self) -> IndexingMap:
        return self.indexing_map_attr.data

    @property
    def induction_vars(self) -> Sequence[BlockArgument]:
        """The body's arguments that run over the map's range variables."""
        return self.body.block.args[: len(self.map.range_vars)]

    @property
    def map_results(self) -> Sequence[BlockArgument]:
        """The body's arguments that hold the map's results."""
        start = len(self.map.range_vars)
        return self.body.block.args[start : start + self.map.num_results]

    @property
    def iter_args(self) -> Sequence[BlockArgument]:
        """The body's arguments that are carried from one iteration to the next."""
        return self.body.block.args[len(self.map.range_vars) + self.map.num_results :]

    def range_of_body_argument(self, number: int) -> Interval | None:
        ivs = len(self.map.range_vars)
        if number < ivs:
            return self.map.range_vars[number].bounds
        return self.map.result_range(number - ivs) if number < ivs + self.map.num_results else None

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        dims = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)

        def argument() -> Parser.Argument:
            return parser.parse_argument(expect_type=False).resolve(INDEX)

        ivs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, argument)
        parser.parse_punctuation("->")
        results = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        parser.parse_keyword("in")
        start = parser.pos
        map_attr = parse_map(parser)
        wanted = map_attr.data
        if (len(dims), len(ivs), len(results)) != (wanted.num_dims, len(wanted.range_vars), wanted.num_results):
            parser.raise_error(
                f"the map has {wanted.num_dims} dims, {len(wanted.range_vars)} range variables and "
                f"{wanted.num_results} results, but the loop {len(dims)}, {len(ivs)} and {len(results)}",
                start,
                parser.pos,
            )
        inits, iter_args = parse_carried(parser, "iter_args")
        body = parser.parse_region((*ivs, *results, *iter_args))
        attributes = parser.parse_optional_attr_dict()
        dim_values = [parser.resolve_operand(dim, INDEX) for dim in dims]
        loop = LoopOp(dim_values, inits, map_attr, body, attributes)
        if not inits:
            ensure_terminator(loop, SingleBlockImplicitTerminator(YieldOp))
        return loop

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self.dims, "()")
        print_values(printer, self.induction_vars, "[]")
        printer.print_string(" -> ")
        print_values(printer, self.map_results, "()")
        printer.print_string(" in ")
        printer.print_attribute(self.indexing_map_attr)
        print_carried(printer, "iter_args", self.iter_args, self.inits)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        if len(self.inits) != len(self.results):
            raise VerifyException(f"{len(self.inits)} inits, but {len(self.results)} results")
        if len(self.dims) != self.map.num_dims:
            raise VerifyException(f"the map has {self.map.num_dims} dims, but there are {len(self.dims)} dim operands")
        arguments = self.body.block.args
        ivs = len(arguments) - self.map.num_results - len(self.results)
        if ivs != len(self.map.range_vars):
            raise VerifyException(
                f"the map has {len(self.map.range_vars)} range variables, but the body {ivs} induction variables"
            )
        for number, argument in enumerate(arguments[: ivs + self.map.num_results]):
            if argument.type != INDEX:
                raise VerifyException(f"block argument {number} is {argument.type}; it must be index")
        for number, (init, argument, result_type) in enumerate(
            zip(self.inits, self.iter_args, self.result_types, strict=True)
        ):
            if init.type != result_type or argument.type != result_type:
                raise VerifyException(
                    f"result {number} is {result_type}, but its init {init.type} and its iter arg {argument.type}"
                )
        last = self.body.block.last_op
        if isinstance(last, YieldOp) and last.arguments.types != self.result_types:
            raise VerifyException(
                f"yields ({comma_separated(last.arguments.types)}), "
                f"but the loop's results are ({comma_separated(self.result_types)})"
            )

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (CanonicalizeLoop(),)


PACKED = "packed"
"""Unit attribute of `atomic_rmw`."""


@op_definition
class AtomicRMWOp(QuickOp, HasFolderInterface):
    """`%u = xla_gpu.atomic_rmw %t[%i, %j] : tensor<2x3xf32> { ^bb0(%current : f32): ... xla_gpu.yield %next : f32 }`

    tensor    the op's `input`; the result is the same with the element replaced
    indices   one per dimension
    body      one block from the old value (an element, or a vector of elements) to the new one; None makes one with an element
              as its argument and without ops
    packed    a unit attribute: neighbouring updates may be joined where one word holds several elements

    Like tensor.insert it has no side effect, but it is not speculatable, because it writes in place when tensors become memory.
    """

    name = "xla_gpu.atomic_rmw"

    input = operand_def(VarConstraint("T", base(TensorType)))
    indices = var_operand_def(IndexType)
    result = result_def(Derived("T", lambda tensor: tensor, base(TensorType)))
    body = region_def("single_block")

    assembly_format = "$input `[` $indices `]` attr-dict `:` type($input) $body"

    traits = traits_def(NoMemoryEffect())

    def __init__(
        self,
        tensor: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        body: Region | None = None,
        attributes: Mapping[str, Attribute | None] | None = None,
    ):
        tensor_type = SSAValue.get(tensor).type
        assert isa(tensor_type, TensorType), "atomic_rmw of a value that is not a tensor"
        if body is None:
            body = Region(Block(arg_types=[tensor_type.element_type]))
            body.block.args[0].name_hint = "current"
        super().__init__(operands=[tensor, indices], result_types=[tensor_type], regions=[body], attributes=attributes)

    @property
    def current(self) -> BlockArgument:
        """The body's argument: the old value."""
        return self.body.block.args[0]

    def verify_(self) -> None:
        tensor_type = self.input.type
        assert isa(tensor_type, TensorType)
        if self.result.type != tensor_type:
            raise VerifyException(f"the result is {self.result.type}, but the input is {tensor_type}")
        verify_indices(self.indices, tensor_type)
        arguments = self.body.block.args
        if len(arguments) != 1:
            raise VerifyException(f"its body takes the old value alone, not {len(arguments)} values")
        old = arguments[0].type
        element = old.element_type if isa(old, VectorType) else old
        if element != tensor_type.element_type:
            raise VerifyException(f"its body takes {old}, but the elements are {tensor_type.element_type}")
        if isa(old, VectorType) and old.get_num_dims() != 1:
            raise VerifyException(f"its body takes {old}; a vector must have one dimension")
        last = self.body.block.last_op
        if not isinstance(last, YieldOp) or last.arguments.types != (old,):
            yielded = comma_separated(last.arguments.types) if isinstance(last, YieldOp) else "nothing"
            raise VerifyException(f"its body must yield one {old}, not {yielded}")

    def fold(self) -> Sequence[SSAValue] | None:
        """The input, if the body yields the old value and does nothing else."""
        last = self.body.block.last_op
        if last is self.body.block.first_op and isinstance(last, YieldOp) and last.arguments[0] is self.current:
            return (self.input,)
        return None


def verify_indices(indices: Sequence[SSAValue], tensor_type: TensorType) -> None:
    """One index per dimension."""
    if len(indices) != tensor_type.get_num_dims():
        raise VerifyException(
            f"{tensor_type} has {tensor_type.get_num_dims()} dimensions, but there are {len(indices)} indices"
        )


# ---- patterns ---------------------------------------------------------------------------------------------------------------------------


class CanonicalizeApplyIndexing(RewritePattern):
    """The simplest form of an apply_indexing, and of each of its results."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ApplyIndexingOp, rewriter: PatternRewriter) -> None:
        operands, indexing_map = operands_of(op), op.map
        if is_simplest(operands, indexing_map) and all([out.first_use is not None for out in op.results]):
            return
        start = Application(indexing_map, tuple(operands))
        used = tuple(
            result if out.first_use is not None else Expr.constant(0)
            for out, result in zip(op.results, op.map.results, strict=True)
        )
        it = simplest(replace(start, map=replace(op.map, results=used)) if used != op.map.results else start)
        # For a map with an empty domain nothing is known of its results.
        is_plain = [
            not it.map.is_known_empty and result.kind in (ExprKind.VARIABLE, ExprKind.CONSTANT)
            for result in it.map.results
        ]
        if it == start and not any(is_plain):
            return
        kept = tuple(result for result, plain in zip(it.map.results, is_plain, strict=True) if not plain)
        new_ops: list[Operation] = []
        rest: Sequence[OpResult] = ()
        if kept:
            others = replace(it.map, results=kept) if any(is_plain) else it.map
            rest = _emit(Application(others, it.operands), op, new_ops)
        remaining = iter(rest)
        results: list[SSAValue] = []
        for result, plain in zip(it.map.results, is_plain, strict=True):
            if not plain:
                results.append(next(remaining))
            elif result.kind is ExprKind.VARIABLE:
                results.append(it.operands[result.value])
            else:
                constant = arith.ConstantOp(IntegerAttr(result.value, INDEX))
                constant.location = op.location
                new_ops.append(constant)
                results.append(constant.result)
        rewriter.replace(op, new_ops, results)


def _emit(it: Application, op: ApplyIndexingOp, new_ops: list[Operation]) -> Sequence[OpResult]:
    smaller = without_unused_vars(it) or it
    new = ApplyIndexingOp(smaller.operands, smaller.map, op.attributes)
    new.location = op.location
    new_ops.append(new)
    return new.results


class CanonicalizeLoop(RewritePattern):
    """Removes constant dims, dims computed by apply_indexing, and unused dims from a loop's map."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoopOp, rewriter: PatternRewriter) -> None:
        start = Application(op.map, tuple(op.dims))
        if (it := simplest_loop(start)) == start:
            return
        body = rewriter.move_region_contents_to_new_regions(op.body)
        new = LoopOp(it.operands, op.inits, it.map, body, op.attributes)
        new.location = op.location
        rewriter.replace(op, new)
