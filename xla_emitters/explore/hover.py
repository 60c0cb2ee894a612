"""What an editor shows beside a name, and what it offers: shape, layout, index maps, the kernel and its price; opcodes and attributes.

    Described(text, "gelu.hlo").of("tanh_0", 18)        Markdown
    completions(line, index)                            [Completion("broadcast", "opcode"), ...]

What is shown of an instruction is read from the module, so it needs a text without faults; the last one without is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo import HLO_OPS
from xla_emitters.dialects.hlo.base import HloOp, written_at
from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.dialects.hlo.types import is_array, leaf_types, type_text
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.opcodes import sentences
from xla_emitters.explore.text_index import TextIndex
from xla_emitters.graph.buffers import array_spec
from xla_emitters.pipelines.compiler import parse_module
from xla_emitters.support.units import bytes_text
from xla_emitters.text.hlo.attribute_text import COMMON, attributes_of
from xla_emitters.text.stablehlo import is_kernel_ir, parse_stablehlo
from xla_emitters.text.stablehlo.computations import op_names
from xla_emitters.text.stablehlo.reader import RULES
from xla_emitters.text.stablehlo.syntax_tables import KEYS

MOST_MAPS = 4
"""Operands whose index maps are shown."""


@dataclass(frozen=True)
class Completion:
    """A word that fits, and what it is: "opcode", "attribute", "instruction", "value", "computation" or "function"."""

    word: str
    kind: str
    detail: str = ""


class Described:
    """A text that was read, by the lines of its instructions.

    raises  ParseError, VerifyError for a text with a fault
    """

    def __init__(self, text: str, name: str, index: TextIndex | None = None) -> None:
        self.index = index or TextIndex(text)
        self._ops = dict[int, list[HloOp]]()
        self._fusions = dict[str, str]()
        if is_kernel_ir(text):
            return  # a kernel's ops are described by their own line
        module = parse_stablehlo(text, name) if self.index.is_mlir else parse_module(text, name)
        for op in module.walk():
            if isinstance(op, HloOp) and (place := written_at(op)) is not None:
                self._ops.setdefault(place.line - 1, []).append(op)
            if isinstance(op, FusionOp):
                self._fusions[op.calls.root_reference.data] = op.instruction_name.data

    def op_at(self, line: int, name: str) -> HloOp | None:
        """The instruction that a line defines; of several, as of a pretty form that stands for two, the last or the one of the name."""
        ops = self._ops.get(line, [])
        return next((op for op in ops if op.instruction_name.data == name), ops[-1] if ops else None)

    def of(self, name: str, line: int, prices: Mapping[str, str] | None = None) -> str:
        """Markdown about the instruction or value that `line`, from 0, defines; "" where nothing is known.

        prices  kernel -> its expected time
        """
        op = self.op_at(line, name)
        if op is None:
            source = self.index.text.split("\n")[line].strip() if self.index.of_line(line) else ""
            named = _OP_OF_LINE.search(source)
            said = sentences()["mlir"].get(named[1], "") if named else ""
            return f"```mlir\n{source[:400]}\n```" + (f"\n\n{said}" if said else "") if source else ""
        scope = self.index.scope_at(line)
        around = self.index.scopes[scope].name if scope >= 0 else ""
        kernels = (name, self._fusions.get(around, around))  # a fusion, what is fused, or an ENTRY that is one kernel
        price = next((f"kernel {each}: {prices[each]}" for each in kernels if each in prices), "") if prices else ""
        return "\n\n".join([*_paragraphs(op), *([price] if price else [])])


def _paragraphs(op: HloOp) -> Iterator[str]:
    name = op.instruction_name.data
    opcode = op.opcode
    types = [each for result in op.results for each in leaf_types(result.type)]
    shown = ", ".join(type_text(each.type) for each in op.results)
    yield f"```hlo\n%{name} = {shown[:400]} {opcode}\n```"
    yield sentences()["hlo"][opcode]
    sizes = list[str]()
    for each in types[:MOST_MAPS]:
        if is_array(each):
            spec = array_spec(each)
            known = all(extent >= 0 for extent in spec.shape)
            size = bytes_text(spec.bytes) if known else "of unknown size"
            order = (
                "row major" if spec.is_row_major else f"minor to major {{{','.join(map(str, spec.minor_to_major))}}}"
            )
            sizes.append(f"{spec}: {size}, {order}")
    if sizes:
        yield "  \n".join(sizes)
    if maps := list(_maps(op)):
        yield "reads of each operand:\n\n```text\n" + "\n".join(maps) + "\n```"


def _maps(op: HloOp) -> Iterator[str]:
    try:
        maps = op.output_to_input()
    except (XlaEmittersError, NotImplementedError, ValueError, TypeError):
        return  # the op has no map, or unknown sizes
    for operand, each in list(zip(op.operands, maps, strict=False))[:MOST_MAPS]:
        yield f"%{_name_of(operand)}: {each}"


def _name_of(value: SSAValue) -> str:
    owner = value.owner
    return owner.instruction_name.data if isinstance(owner, HloOp) else value.name_hint or "?"


_OP_OF_LINE = re.compile(r"(?:^|= )\"?([a-z_]\w*\.[\w.]+)")
_OPCODE_OF_LINE = re.compile(r"=\s*.*?\s([a-z][\w\-]*)\(")


def completions(line: str, number: int, index: TextIndex) -> list[Completion]:
    """What fits at the end of a part of a line.

    line    up to the place
    number  of the line, from 0
    """
    word = re.search(r"[%@]?[\w.$\-]*$", line)
    begun = word[0] if word else ""
    before = line[: len(line) - len(begun)]
    if begun.startswith("@") or re.search(
        r"\b(?:calls|to_apply|condition|body|select|scatter|branch_computations)=\{?$", before
    ):
        return [Completion(f"{begun[:1] if begun[:1] in '%@' else ''}{each.name}", each.kind) for each in index.scopes]
    if begun.startswith("%"):
        scope = index.scope_at(number)
        return [
            Completion(f"%{each.name}", each.kind, each.detail)
            for each in index.symbols
            if each.scope == scope and each.line < number
        ]
    if index.is_mlir:
        return [*_of_stablehlo(before)]
    found = _OPCODE_OF_LINE.search(line)
    if found is None:
        return (
            [Completion(opcode, "opcode", sentences()["hlo"][opcode]) for opcode in HLO_OPS]
            if re.search(r"=\s*\S.*\s$", before)
            else []
        )
    if (op := HLO_OPS.get(found[1])) is None:
        return []
    needed = [
        Completion(f"{name}=", "attribute", "needed" if is_needed else "") for name, is_needed in attributes_of(op)
    ]
    return [*needed, *(Completion(f"{name}=", "attribute", "of every op") for name in COMMON)]


def _of_stablehlo(before: str) -> Iterator[Completion]:
    op = re.search(r"\bstablehlo\.([a-z_]+)\b(?!.*\bstablehlo\.)", before)
    if op and (keys := KEYS.get(op[1])):
        yield from (Completion(f"{key} = ", "attribute", attribute) for key, attribute in keys.items())
    elif op is None:
        yield from (Completion(name, "opcode") for name in op_names(RULES))
