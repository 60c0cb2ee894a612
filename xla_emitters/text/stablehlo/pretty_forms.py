"""The pretty forms of StableHLO's ops: `stablehlo.add %0, %1 : tensor<4xf32>`.

    pretty  := name (values | words | key '=' value | '(' values ')')* regions? attributes? ':' types ('->' types)?

Which keys and words an op has, and which types it writes, are tables in `syntax_tables`; ops with a form of their own have a method here.
Source: StableHLO's ODS declarations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Attribute

from xla_emitters.dialects.hlo.types import array_type, is_array
from xla_emitters.support.cursor import nearest
from xla_emitters.text.stablehlo.attribute_values import (
    Attributes,
    parse_attribute,
    parse_dictionary,
    parse_labels,
    parse_struct,
)
from xla_emitters.text.stablehlo.op_parser import CALLS, RETURNS, OpParser
from xla_emitters.text.stablehlo.spellings import REGIONS
from xla_emitters.text.stablehlo.stablehlo_lexer import StableHloTokenKind, Token
from xla_emitters.text.stablehlo.stablehlo_literals import Elided, Literal
from xla_emitters.text.stablehlo.stablehlo_types import (
    TRUTH,
    parse_both_types,
    parse_listed_types,
    parse_type,
    parse_types,
)
from xla_emitters.text.stablehlo.syntax_tables import (
    FORMAT,
    KEYS,
    NO_TYPES,
    OPERAND_TYPES_ONLY,
    OTHER_TYPES,
    RESULT_TYPES_ONLY,
    SAME_TYPES,
    VALUE_FIRST,
    WORDS,
)
from xla_emitters.text.stablehlo.tree import Op, Region, Value

_QUOTED = {"shape.cstr_require": "msg", "arith.cmpi": "predicate"}
"""Ops with a string in their pretty form -> its attribute."""


class PrettyForms(OpParser):
    """Reads ops in their pretty forms."""

    def pretty(self, op: Op, region: Region) -> tuple[Sequence[Attribute] | None, Sequence[Attribute]]:
        cursor = self.cursor
        opcode = op.opcode
        if op.name in CALLS:
            self._attribute(op, "callee")
            self._parenthesized(op, region)
        elif op.name in VALUE_FIRST:
            return self._value_first(op, VALUE_FIRST[op.name])
        elif op.name == "shape.assuming":
            return self._assuming(op, region)
        elif opcode == "constant":
            self._optional_attributes(op)
            start = cursor.token.start
            value = parse_attribute(cursor)
            op.attributes.add("value", value, start)
            self._optional_attributes(op)
            return self._types(op) if cursor.at(":") else ([], [self._literal_type(op)])
        elif opcode == "while":
            return self._while(op, region)
        elif opcode == "reduce":
            return self._reduce(op, region)
        elif op.name == "chlo.scan":
            return self._scan(op, region)
        elif opcode == "custom_call":
            self._attribute(op, "call_target_name")
            self._parenthesized(op, region)
        elif opcode == "composite":
            self._attribute(op, "name")
            self._items(op, region)
            self._optional_regions(op, region)
        elif op.name.startswith("check."):
            return self._comparison(op, region)
        elif op.name in REGIONS:
            return self._inlined(op, region)
        elif op.name in ("sdy.sharding_constraint", "sdy.reshard", "sdy.data_flow_edge"):
            self._operand(op, region)
            if cursor.accept("sharding"):
                cursor.expect("=", "before a sharding")
            if cursor.at("<"):
                cursor.group("a sharding")
        elif opcode in ("convolution", "dynamic_conv", "top_k"):
            cursor.expect("(", f"after '{op.name}'")
            self._items(op, region)
            cursor.expect(")", "after the operands")
            self._items(op, region)
        elif cursor.at("("):  # as the seed document has it: xla_hlo.d_reshape(%x, %shape) : types
            self._parenthesized(op, region)
        else:
            self._items(op, region)
        if cursor.accept("overflow"):
            cursor.group("the promises of integer arithmetic")
        self._optional_attributes(op)
        return self._types(op)

    def _comparison(self, op: Op, region: Region) -> tuple[Sequence[Attribute] | None, Sequence[Attribute]]:
        """`%0, %1, tolerance = 0.1 : types`, or `%0, dense<[0, 1]> : tensor<2xi32>`, whose type may be written again."""
        cursor = self.cursor
        if op.opcode.endswith("_const"):
            self._operand(op, region)
            cursor.expect(",", "before the literal")
            self._attribute(op, "value")
            if cursor.accept(","):
                self._items(op, region)
        else:
            self._items(op, region)
        self._optional_attributes(op)
        if not cursor.accept(":"):
            return None, []
        types = parse_types(cursor)
        while cursor.accept(","):
            types.append(parse_type(cursor))
        if cursor.accept("->"):
            parse_types(cursor)
        return types * len(op.operands) if len(types) == 1 else types, []

    def _value_first(self, op: Op, name: str) -> tuple[Sequence[Attribute] | None, Sequence[Attribute]]:
        """`4 : index`, `true`, `dense<[1, 2]> : tensor<2xindex>`, `[1, 2] : tensor<2xindex>`"""
        cursor = self.cursor
        self._attribute(op, name)
        self._optional_attributes(op)
        value = op.attributes.found[name].value
        if isinstance(value, Literal | Elided):
            return [], [self._literal_type(op)]
        if isinstance(value, bool) and not cursor.at(":"):
            return [], [TRUTH]
        return self._types(op)

    def _assuming(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """`%witness -> (types) { ... }`"""
        self._operand(op, region)
        types = parse_types(self.cursor) if self.cursor.accept("->") else []
        op.regions.append(self._region(region))
        self._optional_attributes(op)
        return [TRUTH], types

    def _scan(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """`(%x, ...) inits (%0, ...) dimension=1 attributes {...} {...} : (types) -> types`"""
        cursor = self.cursor
        start = cursor.token.start
        self._parenthesized(op, region)
        count = len(op.operands)
        cursor.expect("inits", "after the inputs of a scan")
        inits = Op(op.name, op.token, op.attributes)
        self._parenthesized(inits, region)
        op.operands += inits.operands
        op.spans += inits.spans
        op.attributes.add("operandSegmentSizes", [count, len(inits.operands)], start)
        while cursor.token.kind is StableHloTokenKind.WORD and cursor.token.text != "attributes":
            name = cursor.advance().text
            cursor.expect("=", "after the name of an attribute")
            self._attribute(op, name)
        if cursor.accept("attributes"):
            parse_dictionary(cursor, op.attributes)
        op.regions.append(self._region(region))
        cursor.expect(":", f"before the type of '{op.name}'")
        return parse_both_types(cursor)

    def _inlined(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """`<"name">(%x, ...) key=value ... (%arg: type, ...) {...} : (types) -> types`; the name and the keys do not change values."""
        cursor = self.cursor
        if cursor.at("<"):
            cursor.group("a name")
        self._parenthesized(op, region)
        while cursor.token.kind is StableHloTokenKind.WORD and cursor.token.text != "attributes":
            key = cursor.advance().text
            cursor.expect("=", "after the name of an attribute")
            op.written[key] = cursor.group("the value of an attribute")
        cursor.expect("(", "before the arguments of a region")
        arguments = cursor.items(")", self._argument, "an argument")
        op.regions.append(self._region(region, arguments))
        self._optional_attributes(op)
        cursor.expect(":", f"before the type of '{op.name}'")
        return parse_both_types(cursor)

    def _literal_type(self, op: Op) -> Attribute:
        """The type of a constant, which is inside its literal."""
        value = op.attributes.found["value"].value
        if not isinstance(value, Literal | Elided):
            raise self.cursor.error("the value of a constant is a literal such as dense<0> : tensor<2xi32>", op.token)
        return array_type(value.element.ir_type, value.dims)

    def _attribute(self, op: Op, name: str) -> None:
        start = self.cursor.token.start
        op.attributes.add(name, parse_attribute(self.cursor, is_typed=False), start)

    def _optional_attributes(self, op: Op) -> None:
        if self.cursor.accept("attributes") or self.cursor.at("{"):
            parse_dictionary(self.cursor, op.attributes)

    def _indices(self, op: Op, region: Region) -> None:
        """`%x[%i, %j]`, an element."""
        cursor = self.cursor
        cursor.expect("[", "before the indices of an element")
        cursor.items("]", lambda: self._operand(op, region), "an index")

    def _parenthesized(self, op: Op, region: Region) -> None:
        cursor = self.cursor
        cursor.expect("(", "before the operands")
        cursor.items(")", lambda: self._operand(op, region), "an operand")

    def _items(self, op: Op, region: Region) -> None:
        """Consumes operands, words and `key = value`."""
        cursor = self.cursor
        opcode = op.opcode
        keys, words = KEYS.get(opcode, {}), iter(WORDS.get(opcode, ()))
        first = True
        while True:
            token = cursor.token
            if token.kind is StableHloTokenKind.VALUE:
                self._operand(op, region)
                if cursor.at("["):
                    if op.name == "tensor.extract":
                        self._indices(op, region)
                    else:
                        self._subscript(op)
            elif token.kind is StableHloTokenKind.STRING and op.name in _QUOTED:
                self._attribute(op, _QUOTED[op.name])
            elif token.kind is StableHloTokenKind.WORD and cursor.peek().text == "=":
                cursor.advance()
                cursor.advance()
                if (name := keys.get(token.text)) is None:
                    listed = ", ".join(keys) or "none"
                    raise cursor.error(
                        f"'{op.name}' has no '{token.text} ='{nearest(token.text, keys)}",
                        token,
                        help=f"it takes: {listed}",
                    )
                self._keyed(op, token, name)
            elif token.kind is StableHloTokenKind.WORD and token.text not in ("attributes", "loc"):
                if (name := next(words, None)) is None:
                    raise cursor.unexpected(f"an operand of '{op.name}'")
                cursor.advance()
                op.attributes.add(name, token.text, token.start)
            elif first or not cursor.previous.text == ",":
                return
            else:
                raise cursor.unexpected(f"an operand or an attribute of '{op.name}' after ','")
            first = False
            if not cursor.accept(","):
                # dim_numbers of a convolution follow the parenthesis without a comma.
                if not (cursor.token.kind is StableHloTokenKind.WORD and cursor.peek().text == "="):
                    return

    def _keyed(self, op: Op, key: Token, name: str) -> None:
        """Consumes the value after `key =`."""
        cursor = self.cursor
        start = cursor.token.start
        if name == "dimension_numbers":
            op.attributes.add(name, parse_labels(cursor), start)
        elif name == "window":
            self._window(op)
        elif name in ("batching_dims", "contracting_dims"):
            lhs = parse_attribute(cursor)
            op.attributes.add(f"lhs_{name}", lhs, start)
            cursor.expect("x", f"between the two lists of '{key.text}'")
            start = cursor.token.start
            op.attributes.add(f"rhs_{name}", parse_attribute(cursor), start)
        elif name == "format":
            token = cursor.expect_kind(StableHloTokenKind.WORD, "a format such as e5m10")
            if (match := re.fullmatch(FORMAT, token.text)) is None:
                raise cursor.error(f"no format {token}", token, help="e5m10: five bits of exponent, ten of mantissa")
            op.attributes.add("exponent_bits", int(match[1]), start)
            op.attributes.add("mantissa_bits", int(match[2]), start)
        elif name == "algorithm" and cursor.at("<"):
            op.attributes.add(name, parse_struct(cursor), start)
        else:
            op.attributes.add(name, parse_attribute(cursor, is_typed=False), start)

    _WINDOW: ClassVar = {
        "stride": "window_strides",
        "pad": "padding",
        "lhs_dilate": "lhs_dilation",
        "rhs_dilate": "rhs_dilation",
        "reverse": "window_reversal",
    }

    def _window(self, op: Op) -> None:
        """`{stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]}`"""
        cursor = self.cursor
        found = Attributes(cursor, "window", cursor.token)
        parse_dictionary(cursor, found)
        for key, attr in found.found.items():
            if (name := self._WINDOW.get(key)) is None:
                raise found.error(f"a window has no '{key} ='{nearest(key, self._WINDOW)}", attr)
            op.attributes.found[name] = attr

    def _subscript(self, op: Op) -> None:
        """`%t[0]`, an element of a tuple; `%x[0:4, 1:8:2]`, a slice."""
        cursor = self.cursor
        start = cursor.advance().start
        if op.opcode == "get_tuple_element":
            op.attributes.add("index", cursor.integer("the number of an element"), start)
            cursor.expect("]", "after the number of an element")
            return

        def limits() -> tuple[int, int, int]:
            first = cursor.integer("the start of a range")
            cursor.expect(":", "after the start of a range")
            limit = cursor.integer("the limit of a range")
            return first, limit, cursor.integer("the stride of a range") if cursor.accept(":") else 1

        rows = cursor.items("]", limits, "a range")
        for i, name in enumerate(("start_indices", "limit_indices", "strides")):
            op.attributes.add(name, [row[i] for row in rows], start)

    def _types(self, op: Op) -> tuple[Sequence[Attribute] | None, Sequence[Attribute]]:
        """Consumes `: types`; returns those of the operands (None if omitted) and of the results."""
        cursor = self.cursor
        others = OTHER_TYPES.get(op.name)
        if not cursor.accept(":"):
            if op.name in RETURNS and not op.operands:
                return [], []
            if others is not None and op.name in NO_TYPES:
                return others([], len(op.operands))
            raise cursor.unexpected(f"':' before the types of '{op.name}'")
        if cursor.at("("):
            return parse_both_types(cursor)
        types = parse_listed_types(cursor)
        count, opcode = len(op.operands), op.opcode
        if cursor.accept("->") or cursor.accept("to"):
            return types * count if len(types) == 1 else types, parse_types(cursor)
        if others is not None:
            if not all(map(is_array, types)):
                raise cursor.error(f"'{op.name}' takes arrays and scalars", op.token)
            return others(types, count)
        if opcode in OPERAND_TYPES_ONLY:
            return types, []
        if opcode in SAME_TYPES:
            return types, types
        if opcode in RESULT_TYPES_ONLY:
            return None, types
        if opcode == "select" and len(types) == 2 and count == 3:
            return [types[0], types[1], types[1]], types[1:]
        if len(types) != 1:
            raise cursor.error(f"the types of '{op.name}' are one type, or (types) -> types", op.token)
        return types * count, types

    def _while(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """`(%arg = %init, ...) : types attributes {...} cond {...} do {...}`"""
        cursor = self.cursor

        def value() -> Token:
            name = cursor.expect_kind(StableHloTokenKind.VALUE, "a value of the loop")
            cursor.expect("=", "before its initial value")
            self._operand(op, region)
            return name

        cursor.expect("(", "before the values of a loop")
        names = cursor.items(")", value, "a value of the loop")
        types = parse_listed_types(cursor) if cursor.accept(":") else []
        if len(types) != len(names):
            raise cursor.error(f"a loop of {len(names)} values has {len(types)} types", op.token)
        if cursor.accept("attributes"):
            parse_dictionary(cursor, op.attributes)
        arguments = list(zip(names, types, strict=True))
        for keyword in ("cond", "do"):
            cursor.expect(keyword, f"before the {'condition' if keyword == 'cond' else 'body'} of a loop")
            op.regions.append(self._region(region, arguments))
        return types, types

    def _reduce(self, op: Op, region: Region) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
        """`(%x init: %0), (%y init: %1) applies stablehlo.add across dimensions = [0] : types`, or with `reducer(...) {...}`."""
        cursor = self.cursor
        inits = list[tuple[Value, Token]]()
        while True:
            cursor.expect("(", "before an array and its initial value")
            self._operand(op, region)
            cursor.expect("init", "after an array")
            cursor.expect(":", "after 'init'")
            self._operand(op, region)
            inits.append((op.operands.pop(), op.spans.pop()))
            cursor.expect(")", "after an initial value")
            if not cursor.accept(","):
                break
        op.operands += [value for value, _ in inits]
        op.spans += [token for _, token in inits]
        if cursor.accept("applies"):
            token = cursor.expect_kind(StableHloTokenKind.WORD, "the op that the reduction applies")
            op.attributes.add("applies", token.text, token.start)
        cursor.expect("across", "before the dimensions")
        cursor.expect("dimensions", "after 'across'")
        cursor.expect("=", "after 'dimensions'")
        self._attribute(op, "dimensions")
        self._optional_attributes(op)
        types = self._types(op)
        assert types[0] is not None
        if cursor.accept("reducer"):
            pairs = list[tuple[tuple[Token, Attribute], ...]]()
            while cursor.accept("("):
                first = self._argument()
                cursor.expect(",", "between the two arguments")
                pairs.append((first, self._argument()))
                cursor.expect(")", "after the two arguments")
            op.regions.append(self._region(region, [pair[side] for side in range(2) for pair in pairs]))
        return types[0], types[1]

    def _argument(self) -> tuple[Token, Attribute]:
        return self._located_argument()[:2]
