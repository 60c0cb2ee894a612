"""The text of an op with a declarative format, in fewer calls than xDSL's `FormatProgram.print`, which decides about spaces for each op.

    "$lhs `,` $rhs attr-dict `:` type($result)"   ->   " %", lhs, ", %", rhs, attributes if there are some, " : ", type

Where a space is printed depends on what was printed before. If it is the same whatever optional parts an op has, the spaces are a part of
the texts between the values; if not, or if the format has a directive that is not known here, xDSL's code prints the op.
Source: xDSL, xdsl/irdl/declarative_assembly_format.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any, Protocol, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IntegerType
from xdsl.dialects.utils.dynamic_index_list import DynamicIndexList
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import declarative_assembly_format as form

from xla_emitters.dialects.op_definition import format_of


class Texts(Protocol):
    """What is asked of the printer."""

    def name_of(self, value: SSAValue) -> str: ...
    def text_of(self, attribute: Attribute) -> str: ...
    def captured(self, write: Callable[[], object]) -> str: ...


Piece = Callable[[Any, Any], str]
"""(`Texts`, op) -> a part of the op's text."""
_State = tuple[bool, bool]
"""Whether a space is wanted, and whether punctuation was printed last, as in xDSL's `PrintingState`."""
_AFTER_A_WORD: _State = (True, False)
_NO_SPACE_BEFORE = frozenset(">)}],")
_NO_SPACE_BETWEEN = frozenset("<>(){}[],")
_OPENS = frozenset("<({[")


class _Unknown(Exception):
    """The format needs xDSL's code."""


def pieces_of(op_type: type[Any]) -> tuple[Piece, ...] | None:
    """The parts of the text of ops of this class, after the name; None if it has no format, or one that needs xDSL's code."""
    program = format_of(op_type)
    if program is None:
        return None
    try:
        made = _Pieces([_AFTER_A_WORD])
        made.add(program.stmts)
    except _Unknown:
        return None
    return made.all()


class _Pieces:
    """The parts so far; the text that follows them; and the states that xDSL's code may be in."""

    def __init__(self, states: Iterable[_State], anchor: form.Directive | None = None):
        self._made = list[Piece]()
        self._text = ""
        self._anchor = anchor  # a part that is not empty
        self.states = set(states)

    def all(self) -> tuple[Piece, ...]:
        if self._text:
            text, self._text = self._text, ""
            self._made.append(lambda _, __: text)
        return tuple(self._made)

    def add(self, directives: Sequence[form.FormatDirective]) -> None:
        for directive in directives:
            self._add(directive)

    def _add(self, directive: form.FormatDirective) -> None:
        match directive:
            case form.PunctuationDirective(punctuation=mark):
                self._text += self._agreed(_space_before(mark, state) for state in self.states) + mark
                self.states = {(mark not in _OPENS, True)}
            case form.KeywordDirective(keyword=word):
                self._text += self._agreed(" " if wanted else "" for wanted, _ in self.states) + word
                self.states = {_AFTER_A_WORD}
            case form.WhitespaceDirective(whitespace="" | " " as space):
                self._text += space
                self.states = {(False, space == "")}
            case form.OperandVariable(name=name):
                self._made.append(_operand(self._before_a_word(), attrgetter(name)))
                self.states = {_AFTER_A_WORD}
            case form.VariadicOperandVariable(name=name):
                self._may_be_empty(directive, _operands, attrgetter(name))
            case form.TypeDirective(inner=form.OperandVariable() | form.ResultVariable() as inner):
                self._made.append(_type(self._before_a_word(), attrgetter(f"{inner.name}.type")))
                self.states = {_AFTER_A_WORD}
            case form.TypeDirective(inner=inner):
                self._may_be_empty(inner, _types, inner.get_types)
            case form.AttrDictDirective():
                self._may_be_empty(directive, _dictionary, directive)
            case form.OptionalUnitAttrVariable():
                pass  # it prints nothing
            case form.AttributeVariable() if type(directive).print is form.AttributeVariable.print:
                self._may_be_empty(directive, _attribute, directive)
            case DynamicIndexList():
                self._made.append(_index_list(self._before_a_word(), directive))
                self.states = {_AFTER_A_WORD}
            case form.OptionalGroupDirective():
                self._group(directive)
            case _:
                raise _Unknown

    def _agreed(self, spaces: Any) -> str:
        found = set[str](spaces)
        if len(found) > 1:
            raise _Unknown
        return found.pop()

    def _before_a_word(self) -> str:
        """The text before a word, with its space; it becomes part of the word's piece."""
        space = self._agreed("" if punctuation and not wanted else " " for wanted, punctuation in self.states)
        text, self._text = self._text + space, ""
        return text

    def _may_be_empty(self, directive: form.Directive, piece: Callable[[str, Any], Piece], read: Any) -> None:
        """Adds a part that prints nothing, or a space and words."""
        space = self._agreed("" if punctuation and not wanted else " " for wanted, punctuation in self.states)
        self.all()
        self._made.append(piece(space, read))
        self.states = {_AFTER_A_WORD} if directive == self._anchor else {*self.states, _AFTER_A_WORD}

    def _group(self, group: form.OptionalGroupDirective) -> None:
        self.all()
        there, absent = _Pieces(self.states, group.anchor), _Pieces(self.states)
        there.add((*group.then_whitespace, group.then_first, *group.then_elements))
        absent.add(group.else_elements)
        self._made.append(_either(_presence(group.anchor), there.all(), absent.all()))
        self.states = there.states | absent.states


def _space_before(mark: str, state: _State) -> str:
    wanted, after_punctuation = state
    return " " if wanted and mark not in (_NO_SPACE_BEFORE if after_punctuation else _NO_SPACE_BETWEEN) else ""


def _operand(before: str, read: Any) -> Piece:
    return lambda texts, op: f"{before}%{texts.name_of(read(op))}"


def _operands(space: str, read: Any) -> Piece:
    def piece(texts: Texts, op: Any) -> str:
        values: Sequence[SSAValue] = read(op)
        return space + ", ".join(["%" + texts.name_of(value) for value in values]) if values else ""

    return piece


def _type(before: str, read: Any) -> Piece:
    return lambda texts, op: before + texts.text_of(read(op))


def _types(space: str, read: Any) -> Piece:
    def piece(texts: Texts, op: Any) -> str:
        types: Sequence[Attribute] = read(op)
        return space + ", ".join(map(texts.text_of, types)) if types else ""

    return piece


def _dictionary(_: str, directive: form.AttrDictDirective) -> Piece:
    shown = directive.expected_properties

    def piece(texts: Texts, op: Any) -> str:
        if not op.attributes:
            given = [name for name in shown if name in op.properties] if shown else ()
            if not given:
                return ""
            definitions = op.get_irdl_definition().properties
            if all(definitions[name].default_value == op.properties[name] for name in given):
                return ""
        return texts.captured(lambda: directive.print(texts, form.PrintingState(), op))  # pyright: ignore[reportArgumentType]

    return piece


def _attribute(space: str, directive: form.AttributeVariable) -> Piece:
    is_there, read = _presence(directive), directive.get
    if type(directive).print_attr is form.AttributeVariable.print_attr:
        return lambda texts, op: space + texts.text_of(read(op)) if is_there(op) else ""  # pyright: ignore[reportArgumentType]

    def piece(texts: Texts, op: Any) -> str:
        attribute = read(op)
        if attribute is None or not is_there(op):
            return ""
        return space + texts.captured(lambda: directive.print_attr(texts, attribute))  # pyright: ignore[reportArgumentType]

    return piece


def _index_list(before: str, directive: DynamicIndexList) -> Piece:
    values_of, numbers_of = directive.dynamic_position.get, directive.static_position.get

    def piece(texts: Texts, op: Any) -> str:
        values, numbers = iter(values_of(op)), cast(DenseArrayBase[IntegerType], numbers_of(op))
        entries = [
            "%" + texts.name_of(next(values)) if number == DYNAMIC_INDEX else str(number)
            for number in numbers.iter_values()
        ]
        return f"{before}[{', '.join(entries)}]"

    return piece


def _presence(anchor: form.Directive) -> Callable[[Any], bool]:
    if not isinstance(anchor, form.AttributeVariable):
        return anchor.is_present
    read, default = anchor.get, anchor.default_value

    def is_present(op: Any) -> bool:
        attribute = read(op)
        return attribute is not None and attribute is not default and attribute != default

    return is_present


def _either(is_there: Callable[[Any], bool], there: Sequence[Piece], absent: Sequence[Piece]) -> Piece:
    return lambda texts, op: "".join([piece(texts, op) for piece in (there if is_there(op) else absent)])
