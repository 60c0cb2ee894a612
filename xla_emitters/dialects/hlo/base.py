"""The base class of all HLO instructions: operands, one result, a name, and the methods that define an op's meaning.

    %2 = hlo.multiply %0, %1 {name = "square"} : tensor<8xf32>                         one type: all operands' and the result's
    %3 = hlo.broadcast %c {dimensions = array<i64>, name = "b"} : (tensor<f32>) -> tensor<8xf32>

An op's IR name is `hlo.` and HLO's opcode with `_` for `-` (MLIR's names have no `-`). A property is named as HLO's attribute. Attributes
that any instruction may carry (metadata, sharding ...) are discardable ones, as HLO wrote them, in strings.

An op's class defines its meaning:

    verify_           its attributes and types; a `RuleBroken` names the operand at fault
    shapes            its shape rule, over sizes of any kind: of types, of values, of a program, as code (`shape_rule`)
    evaluate          its value in NumPy: the reference for all stages
    output_to_input   which elements of each operand an element of the result needs
    input_to_output   which elements of the result need an element of an operand: derived from `output_to_input` if that is linear
    emit_element      the code of one element

A method that a class leaves out raises Unsupported naming the op. A new op is a class (or a row of a table that makes classes) in the
module of its family, which lists its classes in `OPS`; `dialects/hlo/__init__.py` lists the families.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypeVar, cast

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FileLineColLoc,
    FunctionType,
    IntegerAttr,
    IntegerType,
    NameLoc,
    StringAttr,
    TensorType,
    TupleType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import prop_def, result_def, var_operand_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from xla_emitters.algebra.inverse import inverse_map
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.hlo.shape_rule import Shape, Sizing, TypeSizing, spelled
from xla_emitters.dialects.hlo.types import (
    BufferType,
    OpaqueType,
    TokenType,
    as_array,
    dims_of,
    same_dims,
    same_shape,
    type_text,
)
from xla_emitters.dialects.op_definition import op_definition
from xla_emitters.dialects.quick_op import PureOp, QuickOp
from xla_emitters.errors import DataError, InternalError, Place, Unsupported

Call: TypeAlias = Callable[[str, Sequence[Any]], Any]
"""(name, values) -> the root's value of the computation `name`: a logical, row-major array, or a tuple of values."""

Emit: TypeAlias = Callable[[], Sequence[SSAValue]]
"""Emits the code of a region and returns the values that it yields."""

EmitStep: TypeAlias = Callable[[Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]]
"""Emits one step of a loop: (the loops' variables, carried values) -> the next carried values."""

OperationT = TypeVar("OperationT", bound=Operation)
HloOpT = TypeVar("HloOpT", bound=QuickOp)


class RuleBroken(VerifyException):
    """A shape or type rule of an instruction does not hold.

    message  what is wrong, e.g. "elementwise operands differ in shape"
    details  what was expected and what was found, one line each
    operand  number of the operand at fault, or None when it is the instruction as a whole
    help     how to correct it
    at       the op at fault when it is not the one being verified
    also     another op to show, and the text about it
    """

    def __init__(
        self,
        message: str,
        *details: str,
        operand: int | None = None,
        help: str = "",
        at: Operation | None = None,
        also: tuple[Operation, str] | None = None,
    ):
        super().__init__(": ".join((message, *details)))
        self.message = message
        self.operand = operand
        self.details = details
        self.help = help
        self.at = at
        self.also = also


class ElementContext(Protocol):
    """The argument of `HloOp.emit_element`: the indices of the element, and methods that emit operands' elements and control flow.

    indices  one index value per dimension of the result
    """

    @property
    def builder(self) -> Builder: ...

    @property
    def indices(self) -> tuple[SSAValue, ...]: ...

    def operand(self, i: int, indices: Sequence[SSAValue] | None = None) -> SSAValue:
        """The element of operand `i` at `indices`; None means those of the result."""
        ...

    def elements(self, i: int, indices: Sequence[SSAValue] | None = None) -> Sequence[SSAValue]:
        """As `operand`, for a tuple: one value per leaf."""
        ...

    def insert(self, op: OperationT, /) -> OperationT:
        """Adds `op` at the point of emission and returns it."""
        ...

    def branch(self, condition: SSAValue, then: Emit, otherwise: Emit, /) -> Sequence[SSAValue]:
        """The values of `then` or `otherwise`, by `condition` (i1); operands requested inside `then` are computed only if it holds."""
        ...

    def loop(self, index_map: IndexingMap, inits: Sequence[SSAValue], body: EmitStep, /) -> Sequence[SSAValue]:
        """`body` for all symbols of `index_map`, the last one fastest, where its constraints hold at the indices of the result.

        inits    the carried values of the first step
        returns  the carried values after the last step
        """
        ...

    def call(self, computation: str, arguments: Sequence[SSAValue], /) -> Sequence[SSAValue]:
        """Calls a computation of scalars; returns one value per leaf of its root."""
        ...


def _after_operand_count(rule: Callable[[Any], None]) -> Any:
    """A rule that is asked of ops with an allowed number of operands alone."""

    def verify_(self: HloOp) -> None:
        self.verify_operand_count()
        rule(self)

    return verify_


class HloOp(PureOp):
    """One HLO instruction; every class of the dialect that is an instruction derives from it."""

    inputs = var_operand_def()
    result = result_def(TensorType | TupleType | TokenType | OpaqueType | BufferType)
    instruction_name = prop_def(StringAttr, prop_name="name")
    OPERANDS: ClassVar[range | None] = None
    """The allowed numbers of operands, e.g. range(1, 2) or `at_least(1)`; None: any number."""

    def __init__(
        self,
        operands: Sequence[SSAValue],
        result_type: Attribute,
        name: str,
        properties: Mapping[str, Attribute | None] | None = None,
    ):
        super().__init__(
            operands=[operands], result_types=[result_type], properties={"name": StringAttr(name), **(properties or {})}
        )
        hint(self)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if (own := cls.__dict__.get("verify_")) is not None:
            cls.verify_ = _after_operand_count(own)
        # Before `op_definition` wraps it in its checks of operands, results and attributes.
        cls.verify_rule = cls.verify_

    @property
    def opcode(self) -> str:
        """HLO's spelling, e.g. "get-tuple-element"."""
        return opcode_of(type(self))

    # ------------------------------------------------------------------------------------------- meaning

    def verify_(self) -> None:
        """The op's shape and type rule, asked of ops with as many operands as OPERANDS allows; raises RuleBroken."""
        self.verify_operand_count()

    def verify_rule(self) -> None:
        """As `verify_`, without xDSL's checks of constraints, which ops built by the parser satisfy by construction."""
        self.verify_()

    def verify_operand_count(self) -> None:
        allowed = self.OPERANDS
        if allowed is None or len(self.operands) in allowed:
            return
        if allowed.stop == sys.maxsize:
            wanted = f"at least {allowed[0]}"
        else:
            wanted = str(allowed[0]) if len(allowed) == 1 else f"{allowed[0]} to {allowed[-1]}"
        raise RuleBroken(
            f"wrong number of operands for '{self.opcode}'",
            f"it has {len(self.operands)}; '{self.opcode}' takes {wanted}",
        )

    def expect_dims(self, wanted: Sequence[int], why: str) -> None:
        """The result's dimensions must be `wanted`; `why` says where they come from."""
        got = dims_of(self.result)
        if not same_dims(got, wanted):
            dims = ",".join("?" if dim < 0 else str(dim) for dim in wanted)
            raise RuleBroken(
                f"'{self.opcode}' cannot have this result shape", f"it is {type_text(self.result.type)}; {why} [{dims}]"
            )

    def arrays_differ(self, operand: int, how: str = "differ in shape") -> RuleBroken:
        """The message for an operand that must have the shape of operand 0."""
        first, other = (type_text(self.operands[i].type) for i in (0, operand))
        details = f"operand {operand} is {other}; operand 0 is {first}"
        return RuleBroken(f"the arrays of '{self.opcode}' {how}", details, operand=operand)

    def expect_element(self) -> None:
        """The result's elements are of the type of operand 0."""
        source, result = as_array(self.operands[0].type), as_array(self.result.type)
        if source.element_type != result.element_type:
            raise RuleBroken(
                f"'{self.opcode}' keeps the element type",
                f"the operand is {type_text(source)}, the result {type_text(result)}",
                operand=0,
            )

    def expect_dimensions(self, numbers: Sequence[int], rank: int) -> None:
        """The numbers of the attribute `dimensions` must be different dimensions of an array of that rank."""
        if not are_dimensions(numbers, rank):
            raise RuleBroken(
                f"dimensions={{{','.join(map(str, numbers))}}} of '{self.opcode}' are not different dimensions of an array of rank {rank}",
                *(f"operand {number} is {type_text(operand.type)}" for number, operand in enumerate(self.operands)),
                f"the result is {type_text(self.result.type)}",
            )

    def expect_dimension(self, dimension: int, rank: int, name: str = "dimensions") -> int:
        """`dimension` must be one of an array of that rank; returns it."""
        if not 0 <= dimension < rank:
            raise RuleBroken(f"{name}={dimension} of '{self.opcode}' is not a dimension of an array of rank {rank}")
        return dimension

    def only_dimension(self, rank: int) -> int:
        """The one number of the attribute `dimensions`, a dimension of an array of that rank."""
        dimensions = integers(self.properties.get("dimensions"))
        if len(dimensions) != 1:
            raise RuleBroken(f"'{self.opcode}' has one number in dimensions=", f"it has {len(dimensions)}")
        return self.expect_dimension(dimensions[0], rank)

    def expect_type(self, wanted: Attribute, why: str) -> None:
        """The result's type must be `wanted` but for its layout; `why` says where it comes from."""
        if not same_shape(self.result.type, wanted):
            raise RuleBroken(
                f"'{self.opcode}' cannot have this result shape",
                f"it is {type_text(self.result.type)}; {why} {type_text(wanted)}",
            )

    def infer_type(self) -> Attribute | None:
        """The result's type from operands and attributes, for text that omits it; None when it does not follow from them."""
        return None

    def shapes(self, s: Sizing) -> Sequence[Shape] | None:
        """The shape rule: the sizes of each array of the result, and what must hold of the operands' sizes (see `shape_rule`).

        It is asked of ops whose attributes `verify_` found to be right. None: only the type says the sizes.
        """
        return None

    @classmethod
    def has_shape_rule(cls) -> bool:
        """Whether `shapes` is defined."""
        return cls.shapes is not HloOp.shapes

    def inferred_shapes(self) -> list[list[int]]:
        """The sizes of each array of the result from the operands' types; UNBOUNDED: not known. raises RuleBroken by the rule"""
        found = self.shapes(TypeSizing(self.operands))
        if found is None:
            raise self.unsupported("no sizes of the result")
        return [spelled(shape) for shape in found]

    def inferred_dims(self) -> list[int]:
        """`inferred_shapes` of a result whose arrays have one shape."""
        return self.inferred_shapes()[0]

    NUMBERS: ClassVar[slice] = slice(0, 0)
    """The operands that hold numbers from which the sizes of the result follow: sizes, places, steps or paddings."""

    @property
    def number_operands(self) -> Sequence[int]:
        """The numbers of the operands in `NUMBERS`."""
        return range(len(self.operands))[self.NUMBERS]

    IN_STABLEHLO: ClassVar[bool] = False
    """Whether StableHLO has the op under the same name, with the same operands and no attributes: its text then needs no row."""

    def drawn_numbers(self, operand: int) -> tuple[int, int] | None:
        """The least and the greatest integer to draw for an operand in `NUMBERS`, so that the op has a value; None for other operands."""
        return None

    MOVED: ClassVar[slice] = slice(0, 0)
    """Of an op that only moves elements: the operands of whose elements the result is made. The others say which, and where."""

    @property
    def moved_operands(self) -> Sequence[int]:
        """The numbers of the operands in `MOVED`."""
        return range(len(self.operands))[self.MOVED]

    READS_ONCE: ClassVar[bool] = False
    """Whether it reads each element of its operands at most once, at places that are known."""

    CONTRACTS: ClassVar[bool] = False
    """Whether it is a `ContractingOp`: for those who ask a module that has none, and do not load the class."""

    DEPENDS_ON_SIZES: ClassVar[bool] = False
    """Whether `evaluate` reads sizes from the types, not from the operands: then the op has a shape rule (see `sized`)."""

    def evaluate(self, operands: Sequence[Any], call: Call) -> Any:
        """The instruction's value from those of its operands: row-major arrays, or tuples of values."""
        raise self.unsupported("no value in NumPy")

    def output_to_input(self) -> tuple[IndexingMap, ...]:
        """For each operand, the elements that one element of the result needs."""
        raise self.unsupported("no indexing map")

    def input_to_output(self) -> tuple[IndexingMap, ...]:
        """For each operand, the elements of the result that depend on one element of the operand; the same for all arrays of a tuple."""
        return tuple(
            inverse_map(index_map, dims_of(operand))
            for index_map, operand in zip(self.output_to_input(), self.operands, strict=True)
        )

    def runtime_origins(self, operand: int) -> tuple[tuple[int, IndexingMap], ...]:
        """For each runtime variable of the operand's map: the number of the operand that holds it, and the map to its element there.

        The variable's value is that element, clamped into the variable's bounds.
        """
        return ()

    def reads_apart(self, operand: int) -> bool:
        """Whether operand `operand` is read in a region (a branch, a loop), or at indices known only at run time.

        Then this use shares the operand's value with no other, whatever its map says: a value that other ops need too must be
        computed outside the region.
        """
        return False

    def emit_element(self, e: ElementContext) -> Sequence[SSAValue]:
        """Emits one element of the result and returns its value, for a tuple one value per leaf."""
        raise self.unsupported("no code")

    def unsupported(self, what: str, help: str = "") -> Unsupported:
        """The error for a method that this op lacks: `what` is "no code", "no indexing map" ..."""
        return Unsupported(
            f"{what} for HLO op '{self.opcode}' (instruction %{self.instruction_name.data})",
            stage="hlo",
            place=written_at(self),
            help=help,
        )

    # ------------------------------------------------------------------------------------------- syntax

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        """Parses the properties before the operands in IR text."""
        return {}

    @classmethod
    def parse_tail(cls, parser: Parser) -> dict[str, Attribute]:
        """Parses the properties after the operands."""
        return {}

    def print_head(self, printer: Printer) -> tuple[str, ...]:
        """Prints what `parse_head` reads; returns the names of those properties."""
        return ()

    def print_tail(self, printer: Printer) -> tuple[str, ...]:
        """Prints what `parse_tail` reads; returns the names of those properties."""
        return ()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        found = cls.parse_head(parser)
        start = parser.pos
        operands = parse_values(parser)
        found |= cls.parse_tail(parser)
        found |= parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        ir_type = parser.parse_type()
        if isinstance(ir_type, FunctionType):
            inputs, results = ir_type.inputs.data, ir_type.outputs.data
        else:
            inputs, results = (ir_type,) * len(operands), (ir_type,)
        known = cls.get_irdl_definition().properties
        return cls.create(
            operands=parser.resolve_operands(operands, inputs, start),
            result_types=results,
            properties={key: value for key, value in found.items() if key in known},
            attributes={key: value for key, value in found.items() if key not in known},
        )

    def print(self, printer: Printer) -> None:
        shown = self.print_head(printer)
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        shown += self.print_tail(printer)
        rest = {key: value for key, value in {**self.properties, **self.attributes}.items() if key not in shown}
        printer.print_string(" ")
        printer.print_attr_dict(dict(sorted(rest.items())))
        printer.print_string(" : ")
        types = [operand.type for operand in self.operands]
        if all(ir_type == self.result.type for ir_type in types):
            printer.print_attribute(self.result.type)
        else:
            printer.print_attribute(FunctionType.from_lists(types, [self.result.type]))


def at_least(count: int) -> range:
    """For `HloOp.OPERANDS`: `count` operands or more."""
    return range(count, sys.maxsize)


def opcode_of(op: type[HloOp]) -> str:
    """HLO's spelling of an op class's opcode."""
    return op.name.removeprefix("hlo.").replace("_", "-")


def integer(attribute: Attribute | None, default: int = 0) -> int:
    """The number of an integer attribute (a truth value as 0 or 1), such as the property `index` of an op; `default` for others."""
    return attribute.value.data if isinstance(attribute, IntegerAttr) else default


def integers(attribute: Attribute | None) -> tuple[int, ...]:
    """The numbers of an integer array attribute, such as the property `dimensions` of an op; () for None."""
    return () if attribute is None else tuple(map(int, cast("DenseArrayBase[IntegerType]", attribute).get_values()))


def are_dimensions(numbers: Sequence[int], rank: int) -> bool:
    """Whether `numbers` are different dimensions of an array of that rank."""
    return len(set(numbers)) == len(numbers) and all(0 <= dim < rank for dim in numbers)


def owner_of(value: SSAValue) -> HloOp:
    """The instruction that makes a value of a computation."""
    assert isinstance(value.owner, HloOp)
    return value.owner


def class_for(
    base: type[HloOpT], opcode: str, module: str, members: Mapping[str, Any], dialect: str = "hlo"
) -> type[HloOpT]:
    """The op class of a row in a table, as if written out in `module` with these members. Those in capitals are no fields."""
    words = opcode.split("-")
    namespace = {
        "__module__": module,
        "__doc__": f"HLO's `{opcode}`; see the rows of {module.rpartition('.')[2]}.",
        "__annotations__": {name: ClassVar[Any] for name in members if name.isupper()},
        "name": f"{dialect}.{'_'.join(words)}",
        **members,
    }
    made: Any = type("".join(map(str.capitalize, words)) + "Op", (base,), namespace)
    return op_definition(made)


def parse_values(parser: Parser) -> list[UnresolvedOperand]:
    """`%a, %b`, or nothing."""
    found = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    )
    return found or []


def hint(op: HloOp) -> None:
    """Names the op's SSA value after the instruction where MLIR's rules for names allow."""
    name = op.instruction_name.data
    if SSAValue.is_valid_name(name):
        op.results[0].name_hint = name


def written_at(op: Operation) -> Place | None:
    """The place of `op` in its source, without the line's text; None when the op has no location."""
    location, name = op.location, ""
    if isinstance(location, NameLoc):
        location, name = location.location, f"%{location.desc.data}"
    if isinstance(location, FileLineColLoc):
        return Place(location.filename.data, location.line.data, location.column.data, instruction=name)
    return None


def no_call(name: str, operands: Sequence[Any]) -> Any:
    """The `Call` for an op that applies no computation."""
    raise InternalError(
        f"an op that applies no computation calls '{name}' with {len(operands)} values", stage="evaluate"
    )


def fault(op: HloOp, message: str) -> DataError:
    """The error for operands with which `op` has no value."""
    return DataError(f"%{op.instruction_name.data} = {op.opcode}: {message}", stage="evaluate", place=written_at(op))
