"""IR as text, as MLIR prints it: aliases for maps, `module`, `return`, descriptive value names.

    #map = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096, ...), domain: ...">
    module @fusion attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
      func.func @fusion(%input: tensor<6x512x4096xbf16>, %output: ...) -> tensor<6x512x4096xbf16> {
        %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
        %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, ...) in #map iter_args(...) -> (...) {

xDSL's printer writes a long map at every use, `builtin.module`, `func.return`, and one `print` call per word. This one writes each
map once, at the top, in order of first use; shortens what MLIR shortens; names values that have no name of their own by their op, as
MLIR does; gives several results one name (`%r:2`, `%r#1`); and caches the text of each attribute, so that time is linear in the ops.
Its output can be read by `context.parse_ir`, and by `mlir-opt` if the ops are MLIR's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Literal, TypeAlias

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    ModuleOp,
    UnitAttr,
    UnregisteredOp,
    VectorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator

from xla_emitters.dialects.attributes import name_of_constant
from xla_emitters.dialects.float_bits import hexadecimal, print_dense
from xla_emitters.dialects.quick_format import Piece, pieces_of
from xla_emitters.dialects.quick_op import blocks_of, op_of, operands_of, ops_of
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr
from xla_emitters.support.late_dataclass import dataclass

Spelling: TypeAlias = Literal["seed", "upstream"]

# Ours -> today's XLA's. Ops of the `xla_gpu` dialect that are not here have the same name in both.
UPSTREAM_NAMES = {
    f"xla_gpu.{name}": f"xla.{name}"
    for name in (
        *("apply_indexing", "atomic_rmw", "get_dynamic_dim_size", "loop"),
        *("predicated_extract", "predicated_insert", "pure_call", "yield"),
    )
}


def print_ir(op: Operation, *, locations: bool = False, generic: bool = False, spelling: Spelling = "seed") -> str:
    """`op` as text, without a newline at its end.

    locations  every op with its `loc(...)`
    generic    MLIR's generic form, for tools that do not know the ops
    spelling   "seed": `xla_gpu.loop`, `#map`; "upstream": `xla.loop`, `#indexing_map`, as in today's XLA

    Maps of one text share one alias.
    """
    printer = KernelPrinter(locations=locations, generic=generic, spelling=spelling)
    printer.print_op(op)
    return printer.text()


def print_ir_with_lines(op: Operation) -> tuple[str, list[tuple[int, Operation]]]:
    """`op` as `print_ir` prints it, and every op in it with the number of the line, from 0, on which it starts."""
    printer = KernelPrinter(locations=False, generic=False, spelling="seed")
    starts = printer.note_starts()
    printer.print_op(op)
    return printer.text(), printer.lines_of(starts)


@dataclass(frozen=True)
class OpText:
    """The text of an op in a module's body, and its first line in the module's text, from 0."""

    line: int
    text: str


def print_parts(
    module: ModuleOp, known: Mapping[Operation, OpText]
) -> tuple[str, list[tuple[int, Operation]], dict[Operation, OpText]]:
    """A module as `print_ir_with_lines` prints it, and the text of each op in its body.

    known    ops in its body with their texts, which are not printed again: of the ops inside them no lines are returned
    returns  no texts of ops where some text has an alias: it may be another one in the next text
    """
    printer = KernelPrinter(locations=False, generic=False, spelling="seed")
    starts, ends = printer.note_starts(), printer.reuse(known)
    printer.print_op(module)
    text, lines = printer.text(), printer.lines_of(starts)
    if printer.has_aliases:
        return text, lines, {}
    first = dict((op, line) for line, op in reversed(lines))
    return text, lines, {op: OpText(first[op], part) for op, part in ends.items()}


# ---- names of values that have none ---------------------------------------------------------------------------------------------------


def _constant_name(op: Operation) -> str:
    return name_of_constant(op.properties.get("value"))


def _with_dimension(prefix: str) -> Callable[[Operation], str]:
    return lambda op: f"{prefix}_{getattr(op.properties['dimension'], 'data')}"  # noqa: B009


_DEFAULT_NAMES: dict[str, str | Callable[[Operation], str]] = {
    "arith.constant": _constant_name,
    "gpu.block_dim": _with_dimension("block_dim"),
    "gpu.block_id": _with_dimension("block_id"),
    "gpu.grid_dim": _with_dimension("grid_dim"),
    "gpu.thread_id": _with_dimension("thread_id"),
    "tensor.collapse_shape": "collapsed",
    "tensor.dim": "dim",
    "tensor.expand_shape": "expanded",
    "tensor.extract": "extracted",
    "tensor.extract_slice": "extracted_slice",
    "tensor.from_elements": "from_elements",
    "tensor.insert": "inserted",
    "tensor.insert_slice": "inserted_slice",
    "xla_gpu.allocate_shared": "shmem",
    "xla_gpu.atomic_rmw": "atomic_rmw",
    "xla_gpu.loop": "xla_loop",
    "xla_gpu.pure_call": "pure_call",
    "xla_gpu.sync_threads": "synced_tensor",
}


# Attributes that are often created anew and for which equal ones have one text. Not so maps: equality ignores the names of variables.
_PLAIN = (IntegerAttr, FloatAttr, DenseArrayBase, IntegerType, VectorType)


_PIECES: dict[type[Operation], tuple[Piece, ...] | None] = {}
"""The parts of the text of ops with a declarative format, by class; None: xDSL's code prints it."""


_NOT_PLAIN = re.compile(rb'[^ -~]|["\\\\]')
"""A byte that is escaped in a text."""


class KernelPrinter(Printer):
    """xDSL's printer with the changes listed in the file's head. One printer prints one text."""

    def __init__(self, *, locations: bool, generic: bool, spelling: Spelling):
        super().__init__(stream=None, print_debuginfo=locations, print_generic_format=generic)
        self.spelling: Spelling = spelling
        self._renamed = UPSTREAM_NAMES if spelling == "upstream" else {}
        self._written: list[str] = []
        self._line_start = "\n"
        # Keyed by identity: hashing a type costs more than printing it. The attribute is kept alive so that its id is not reused.
        self._attribute_texts: dict[int, tuple[Attribute, str]] = {}
        self._plain_texts: dict[Attribute, str] = {}
        self._keys: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._is_isolated: dict[type[Operation], bool] = {}
        # Per scope (module, function): name -> the next suffix to try; and the next number of an argument.
        self._taken: list[dict[str, int]] = [{}]
        self._next_argument: list[int] = [0]
        self._starts: list[tuple[int, Operation]] | None = None
        self._known: Mapping[Operation, OpText] = {}
        self._parts: dict[Operation, str] | None = None
        self._is_in_module = False  # whether the op that is printed next is in a module's body

    def note_starts(self) -> list[tuple[int, Operation]]:
        """Returns a list to which each op printed from now on is appended with its start, for `lines_of`."""
        self._starts = []
        return self._starts

    def reuse(self, known: Mapping[Operation, OpText]) -> dict[Operation, str]:
        """Prints these ops as they were printed before. Returns a dict to which each op in a module's body is added with its text."""
        self._known, self._parts = known, {}
        return self._parts

    @property
    def has_aliases(self) -> bool:
        return bool(self._aliases)

    def lines_of(self, starts: Iterable[tuple[int, Operation]]) -> list[tuple[int, Operation]]:
        """The ops with the numbers of their lines in `text()`, from 0."""
        line, seen, found = len(self._aliases), 0, list[tuple[int, Operation]]()
        for start, op in starts:
            line += "".join(self._written[seen:start]).count("\n")
            seen = start
            found.append((line, op))
        return found

    def text(self) -> str:
        """The printed text, with the aliases first."""
        return "".join([*(f"{alias} = {text}\n" for text, alias in self._aliases.items()), *self._written])

    # ---- characters ---------------------------------------------------------------------------------------------------------------

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        if "\n" in text:
            text = text.replace("\n", self._line_start if indent is None else "\n" + " " * (2 * indent))
        self._written.append(text)

    def _print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        self._written.append(self._line_start if indent is None else "\n" + " " * (2 * indent))

    def print_bytes_literal(self, bytestring: bytes) -> None:
        if _NOT_PLAIN.search(bytestring):
            super().print_bytes_literal(bytestring)
        else:
            self._written.append(f'"{bytestring.decode()}"')

    # ---- attributes ---------------------------------------------------------------------------------------------------------------

    def print_attribute(self, attribute: Attribute) -> None:
        if self.printing_location and isinstance(attribute, LocationAttr):
            # Inside another location it prints without `loc(...)`.
            super().print_attribute(attribute)
            return
        self._written.append(self.text_of(attribute))

    def text_of(self, attribute: Attribute) -> str:
        if (known := self._attribute_texts.get(id(attribute))) is not None:
            return known[1]
        is_plain = type(attribute) in _PLAIN
        text = self._plain_texts.get(attribute) if is_plain else None
        if text is None:
            outer, self._written = self._written, []
            if not is_plain and isinstance(attribute, IndexingMapAttr):
                self._print_map(attribute)
            elif type(attribute) is DenseIntOrFPElementsAttr:
                dense: DenseIntOrFPElementsAttr[Any] = attribute
                print_dense(self, dense)
                self._written += [" : ", self.text_of(dense.get_type())]
            else:
                super().print_attribute(attribute)
            text = "".join(self._written)
            self._written = outer
            if is_plain:
                self._plain_texts[attribute] = text
        self._attribute_texts[id(attribute)] = (attribute, text)
        return text

    def _print_map(self, attribute: IndexingMapAttr) -> None:
        """Prints the map's alias, which is created on first use."""
        name, stem = ("xla", "indexing_map") if attribute.spelling_for(self) == "upstream" else ("xla_gpu", "map")
        text = f'#{name}.indexing_map<"{attribute.text_for(self)}">'
        number = len(self._aliases)
        self._written.append(self._aliases.setdefault(text, f"#{stem}{number or ''}"))

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        entries = [
            self._key(name) if type(value) is UnitAttr else f"{self._key(name)} = {self.text_of(value)}"
            for name, value in attr_dict.items()
        ]
        self._written.append("{" + ", ".join(entries) + "}")

    def _key(self, name: str) -> str:
        if (known := self._keys.get(name)) is None:
            known = self._keys[name] = self.captured(lambda: self.print_identifier_or_string_literal(name))
        return known

    def captured(self, write: Callable[[], object]) -> str:
        """The text that `write` prints, which is not printed."""
        outer, self._written = self._written, []
        write()
        text = "".join(self._written)
        self._written = outer
        return text

    def print_function_type(self, input_types: Iterable[Attribute], output_types: Iterable[Attribute]) -> None:
        outputs = list(output_types)
        results = ", ".join(map(self.text_of, outputs))
        if len(outputs) != 1 or isinstance(outputs[0], FunctionType):
            results = f"({results})"
        self._written.append(f"({', '.join(map(self.text_of, input_types))}) -> {results}")

    def print_float(self, value: float, type: AnyFloat) -> None:  # noqa: A002 (xDSL's name)
        if isfinite(value):
            super().print_float(value, type)
        else:
            self._written.append(hexadecimal(value, type))

    # ---- values -------------------------------------------------------------------------------------------------------------------

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self.name_of(value)
        self._written.append("%" + name)
        return name

    def name_of(self, value: SSAValue) -> str:
        name = self._ssa_values.get(value)
        if name is None:
            name = self._ssa_values[value] = self._new_name(value)
        return name

    def _new_name(self, value: SSAValue) -> str:
        hint = value.name_hint
        if hint is None:
            if (op := op_of(value)) is not None:
                default = _DEFAULT_NAMES.get(op.name)
                hint = default(op) if callable(default) else default
            elif isinstance(value, BlockArgument) and value.block.prev_block is None:
                return self._new_argument_name()
        if hint is None:
            return self._get_new_valid_name_id()
        taken = self._taken[-1]
        name = hint
        if name in taken:
            suffix = taken[hint]
            while (name := f"{hint}_{suffix}") in taken:
                suffix += 1
            taken[hint] = suffix + 1
        taken[name] = 0
        return name

    def _new_argument_name(self) -> str:
        taken, number = self._taken[-1], self._next_argument[-1]
        while (name := f"arg{number}") in taken:
            number += 1
        self._next_argument[-1] = number + 1
        taken[name] = 0
        return name

    def _print_results(self, op: Operation) -> None:
        results = op.results
        if not results:
            return
        if len(results) > 1 and self._share_a_name(results):
            name = self._ssa_values[results[0]] = self._new_name(results[0])
            for number, result in enumerate(results):
                self._ssa_values[result] = f"{name}#{number}"
            self._written.append(f"%{name}:{len(results)} = ")
            return
        self._written.append("".join(["%", ", %".join(map(self.name_of, results)), " = "]))

    def _share_a_name(self, results: Sequence[OpResult]) -> bool:
        """Whether the results of one op have no different names, and none was used before its definition."""
        first = results[0].name_hint
        return all(result.name_hint in (None, first) and result not in self._ssa_values for result in results)

    # ---- ops ----------------------------------------------------------------------------------------------------------------------

    def enter_scope(self) -> None:
        super().enter_scope()
        self._taken.append(self._taken[-1].copy())
        self._next_argument.append(self._next_argument[-1])

    def exit_scope(self) -> None:
        super().exit_scope()
        self._taken.pop()
        self._next_argument.pop()

    def print_op(self, op: Operation) -> None:
        if self._starts is not None:
            self._starts.append((len(self._written), op))
        if self._parts is not None and self._is_in_module:
            self._print_part(op, self._parts)
        else:
            self._print_op(op)

    def _print_part(self, op: Operation, parts: dict[Operation, str]) -> None:
        """Prints an op in a module's body, or its text if that is known; what is isolated has no names of its surroundings in it."""
        start = len(self._written)
        if op in self._known:
            self._written.append(self._known[op].text)
        else:
            self._print_op(op)
        if not op.results and op.has_trait(IsolatedFromAbove, value_if_unregistered=False):
            parts[op] = "".join(self._written[start:])

    def _print_op(self, op: Operation) -> None:
        op_type = type(op)
        isolated = self._is_isolated.get(op_type)
        if isolated is None:
            if isinstance(op, UnregisteredOp):
                super().print_op(op)
                return
            isolated = self._is_isolated[op_type] = op.has_trait(IsolatedFromAbove)
        self._print_results(op)
        if isolated:
            self.enter_scope()
        name = self._renamed.get(op.name, op.name)
        if self.print_generic_format or op_type.print is Operation.print:
            self._written.append(f'"{name}"')
            self.print_op_with_default_format(op)
        else:
            pieces = _PIECES[op_type] if op_type in _PIECES else _PIECES.setdefault(op_type, pieces_of(op_type))
            if pieces is None:
                self._written.append(self._short_name(op, name))
                op.print(self)
            else:
                self._written.append(name if name[:5] != "func." else self._short_name(op, name))
                self._written += [piece(self, op) for piece in pieces]
            if self.print_debuginfo:
                self._written.append(" ")
                self.print_attribute(op.location)
        if isolated:
            self.exit_scope()

    def print_op_with_default_format(self, op: Operation) -> None:
        self._written.append(f"({', '.join(['%' + self.name_of(operand) for operand in operands_of(op)])})")
        self.print_successors(op.successors)
        if op.properties:
            self._written.append(" <")
            self.print_attr_dict(op.properties)
            self._written.append(">")
        self.print_regions(op.regions)
        if op.attributes:
            self._written.append(" ")
            self.print_attr_dict(op.attributes)
        self._written.append(" : ")
        self.print_operation_type(op)

    def _short_name(self, op: Operation, name: str) -> str:
        """The name without the dialect where MLIR omits it: the module, and `func` ops directly inside a function."""
        if name == "builtin.module":
            return "module"
        if name in ("func.return", "func.call") and (parent := op.parent_op()) and parent.name == "func.func":
            return name.removeprefix("func.")
        return name

    def print_block(self, block: Block, print_block_args: bool = True, print_block_terminator: bool = True) -> None:
        if print_block_args:
            # A label has the indentation of the op that contains it.
            self._print_new_line()
            self.print_block_name(block)
            if block.args:
                with self.in_parens():
                    self.print_list(block.args, self.print_block_argument)
            self._written.append(":")
        outer, holder = self._line_start, block.parent_op()
        self._line_start = start = outer + "  "
        self._indent += 1
        is_in_module = holder is not None and holder.name == ModuleOp.name
        for op in ops_of(block):
            if not print_block_terminator and op.has_trait(IsTerminator, value_if_unregistered=False):
                continue
            self._written.append(start)
            self._is_in_module = is_in_module
            self.print_op(op)
        self._line_start = outer
        self._indent -= 1

    def print_region(
        self,
        region: Region,
        print_entry_block_args: bool = True,
        print_empty_block: bool = True,
        print_block_terminators: bool = True,
    ) -> None:
        for number, block in enumerate(blocks_of(region)):
            if block not in self._blocks:
                self._populate_block_name(block, number)
        self._written.append("{")
        for block in blocks_of(region):
            is_labelled = block.prev_block is not None or (
                (bool(block.args) and print_entry_block_args) or (block.first_op is None and print_empty_block)
            )
            self.print_block(block, is_labelled, print_block_terminators)
        self._print_new_line()
        self._written.append("}")
