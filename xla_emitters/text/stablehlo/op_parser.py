"""One op of StableHLO text with its values and regions, in the generic form; the pretty forms are of `pretty_forms`.

    region   := '{' (block '(' arguments ')' ':')? op* '}'
    op       := (values '=')? (generic | pretty) location?
    generic  := string '(' values ')' ('<' attributes '>')? ('(' regions ')')? attributes? ':' types '->' types

Each use of a value is looked up when it is read: an undefined name, a name defined twice and a written type that differs from the
value's are errors at that name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.types import dims_of, is_array
from xla_emitters.errors import Place, Unsupported, VerifyError
from xla_emitters.support.cursor import nearest
from xla_emitters.support.source import Source
from xla_emitters.text.stablehlo.attribute_values import Attributes, optional_dictionary, parse_dictionary
from xla_emitters.text.stablehlo.spellings import may_broadcast, renamed
from xla_emitters.text.stablehlo.stablehlo_lexer import StableHloCursor, StableHloTokenKind, Token, unquoted
from xla_emitters.text.stablehlo.stablehlo_locations import Location, parse_location
from xla_emitters.text.stablehlo.stablehlo_types import parse_both_types, parse_type
from xla_emitters.text.stablehlo.tree import Op, Region, Value

DIALECTS = ("stablehlo", "chlo", "mhlo", "check", "func", "sdy", "arith", "tensor", "shape")
RETURNS = ("return", "func.return", "stablehlo.return", "sdy.return", "shape.assuming_yield")
CALLS = ("call", "func.call")


class OpParser(ABC):
    """Reads the ops of one text."""

    def __init__(self, source: Source):
        self.source = source
        self.cursor = StableHloCursor(source)
        self._values: dict[str, Value] = {}

    @abstractmethod
    def pretty(self, op: Op, region: Region) -> tuple[Sequence[Attribute] | None, Sequence[Attribute]]:
        """Consumes an op after its name, in its pretty form; returns the types of its operands (None if omitted) and results."""

    # ----------------------------------------------------------------------------------------------------------- regions

    def _region(self, around: Region, arguments: Sequence[tuple[Token, Attribute]] = ()) -> Region:
        """Consumes `{ ... }`; `arguments` are those of pretty forms, which name them before the brace."""
        region = Region(around, self.cursor.token)
        outside = self._values
        self._values = dict(outside)
        for token, ir_type in arguments:
            region.arguments.append(self._define(Value(token.text[1:], ir_type, token, region)))
        with self.cursor.nested():
            self._region_ops(region)
        self._values = outside
        return region

    def _region_ops(self, region: Region) -> list[Location | None]:
        """Consumes `{ ^bb0(arguments): ops }`; returns the arguments' locations."""
        cursor = self.cursor
        start = cursor.expect("{", "before the ops of a region")
        locations = list[Location | None]()
        if cursor.token.kind is StableHloTokenKind.BLOCK:
            cursor.advance()

            def argument() -> None:
                token, ir_type, location = self._located_argument()
                region.arguments.append(self._define(Value(token.text[1:], ir_type, token, region)))
                locations.append(location)

            if cursor.accept("("):
                cursor.items(")", argument, "an argument")
            cursor.expect(":", "after the arguments of a block")
        while not cursor.at("}"):
            if cursor.token.kind is StableHloTokenKind.END:
                raise cursor.error("this region is not closed", start, details=("got the end of the text",))
            if cursor.token.kind is StableHloTokenKind.BLOCK:
                raise cursor.unsupported("a region of several blocks is not taken", cursor.token)
            if region.ops and region.ops[-1].name in RETURNS:
                raise cursor.error("an op after the return of its region", cursor.token)
            region.ops.append(self._op(region))
        end = cursor.advance()
        if not region.ops or region.ops[-1].name not in RETURNS:
            raise cursor.error("this region does not end in a return", end)
        return locations

    # --------------------------------------------------------------------------------------------------------------- ops

    def _op(self, region: Region) -> Op:
        cursor = self.cursor
        results = self._result_names()
        token = cursor.token
        if token.kind not in (StableHloTokenKind.STRING, StableHloTokenKind.WORD):
            raise cursor.unexpected("an op such as stablehlo.add")
        cursor.advance()
        name = renamed(unquoted(token.text))
        op = Op(name, token, Attributes(cursor, name, token))
        self._check_dialect(op)
        is_generic = token.kind is StableHloTokenKind.STRING
        operand_types, result_types = self._generic(op, region) if is_generic else self.pretty(op, region)
        op.location = self._optional_location()
        if may_broadcast(unquoted(token.text)):
            self._spell_out(op)
        self._check_operands(op, operand_types)
        self._define_results(op, region, results, result_types)
        return op

    def _spell_out(self, op: Op) -> None:
        """Makes CHLO's op of one whose operands have different sizes, or say to which dimensions of the result theirs belong."""
        sizes = [dims_of(value.type) if is_array(value.type) else None for value in op.operands]
        if "broadcast_dimensions" in op.attributes or len(set(sizes)) > 1:
            op.name = f"chlo.broadcast_{op.opcode}"

    def _check_dialect(self, op: Op) -> None:
        dialect, dot, _ = op.name.partition(".")
        if op.name in (*RETURNS, *CALLS) or (dot and dialect in DIALECTS):
            return
        if not dot:
            help = f"ops are written with their dialect: stablehlo.{op.name}"
            raise self.cursor.error(f"no op '{op.name}'", op.token, help=help)
        if dialect == "vhlo":
            raise self._vhlo(op.token)
        raise self.cursor.unsupported(f"ops of the dialect '{dialect}' are not taken: '{op.name}'", op.token)

    def _result_names(self) -> list[tuple[Token, int]]:
        """Consumes `%a, %b:2 =`."""
        cursor = self.cursor
        found = list[tuple[Token, int]]()
        while cursor.token.kind is StableHloTokenKind.VALUE:
            token = cursor.advance()
            count = 1
            if cursor.accept(":"):
                count = cursor.integer("the number of results")
            found.append((token, count))
            if not cursor.accept(","):
                break
        if found:
            cursor.expect("=", "after the names of the results")
        return found

    def _define_results(
        self, op: Op, region: Region, names: list[tuple[Token, int]], result_types: Sequence[Attribute]
    ) -> None:
        count = sum(number for _, number in names)
        if names and count != len(result_types):
            raise self.cursor.error(f"'{op.name}' has {len(result_types)} results, and {count} are named", names[0][0])
        types = iter(result_types)
        if not names:
            op.results = [Value("", ir_type, op.token, region, op) for ir_type in types]
            return
        for token, number in names:
            plain = token.text[1:]
            if "#" in plain:
                raise self.cursor.error("a result is named without '#'", token)
            for i in range(number):
                name = plain if number == 1 else f"{plain}#{i}"
                op.results.append(self._define(Value(name, next(types), token, region, op)))
            if number != 1 and plain in self._values:
                raise self._twice(token, self._values[plain])

    def _define(self, value: Value) -> Value:
        if (other := self._values.get(value.name)) is not None:
            raise self._twice(value.token, other)
        self._values[value.name] = value
        return value

    def _twice(self, token: Token, other: Value) -> VerifyError:
        return VerifyError(
            f"{token.text} is defined twice",
            stage="stablehlo.verify",
            place=self._place(token),
            notes=((self._place(other.token), "first defined here"),),
        )

    def _operand(self, op: Op, region: Region) -> None:
        token = self.cursor.expect_kind(StableHloTokenKind.VALUE, "an operand")
        name = token.text[1:]
        value = self._values.get(name)
        if value is None and name.endswith("#0"):
            value = self._values.get(name[:-2])
        if value is None:
            raise self._undefined(token)
        region.uses(value)
        op.operands.append(value)
        op.spans.append(token)

    def _undefined(self, token: Token) -> VerifyError:
        name = token.text[1:]
        if f"{name}#0" in self._values:
            count = sum(known.startswith(f"{name}#") for known in self._values)
            help = f"it has {count} results: {token.text}#0 to {token.text}#{count - 1}"
        else:
            help = nearest(name, self._values).removeprefix("; ").replace("'", "'%", 1)
        return VerifyError(
            f"no value {token.text} before this op", stage="stablehlo.verify", place=self._place(token), help=help
        )

    def _check_operands(self, op: Op, types: Sequence[Attribute] | None) -> None:
        """Checks that the written types are those of the values."""
        if types is None:
            return
        if len(types) != len(op.operands):
            raise self.cursor.error(
                f"'{op.name}' has {len(op.operands)} operands, and the types of {len(types)} are written", op.token
            )
        for value, token, ir_type in zip(op.operands, op.spans, types, strict=True):
            if value.type is not ir_type and value.type != ir_type:
                raise VerifyError(
                    f"{token.text} is written with a type that is not its own",
                    stage="stablehlo.verify",
                    place=self._place(token),
                    details=(f"written {ir_type}; it is {value.type}",),
                    notes=((self._place(value.token), f"{token.text} is defined here"),),
                )

    # ------------------------------------------------------------------------------------------------------ generic form

    def _generic(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        cursor = self.cursor
        cursor.expect("(", "after the name of an op")
        cursor.items(")", lambda: self._operand(op, region), "an operand")
        if cursor.at("["):
            raise cursor.unsupported("ops with successors are not taken", cursor.token)
        self._optional_properties(op.attributes)
        self._optional_regions(op, region)
        optional_dictionary(cursor, op.attributes)
        cursor.expect(":", f"before the type of '{op.name}'")
        if not cursor.at("("):
            raise cursor.unexpected("'(' before the types of the operands")
        return parse_both_types(cursor)

    def _optional_regions(self, op: Op, region: Region) -> None:
        """Consumes `({...}, {...})`."""
        cursor = self.cursor
        if cursor.accept("("):
            op.regions += cursor.items(")", lambda: self._region(region), "a region")

    def _optional_properties(self, attributes: Attributes) -> None:
        if self.cursor.accept("<"):
            parse_dictionary(self.cursor, attributes)
            self.cursor.expect(">", "after the properties of an op")

    # ------------------------------------------------------------------------------------------------------------ pieces

    def _optional_location(self) -> Location | None:
        return parse_location(self.cursor) if self.cursor.token.text == "loc" else None

    def _place(self, token: Token) -> Place:
        return self.source.place(token.start, token.end)

    def _located_argument(self) -> tuple[Token, Attribute, Location | None]:
        token = self.cursor.expect_kind(StableHloTokenKind.VALUE, "an argument")
        self.cursor.expect(":", "after the name of an argument")
        return token, parse_type(self.cursor), self._optional_location()

    def _vhlo(self, token: Token) -> Unsupported:
        return self.cursor.unsupported(
            f"{token.text} is of VHLO, the form in which StableHLO is stored; this reads StableHLO itself",
            token,
            "stablehlo-opt --vhlo-to-version=target=current --vhlo-legalize-to-stablehlo FILE > FILE.mlir",
        )
