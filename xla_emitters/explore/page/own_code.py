"""The part of LLVM IR, PTX and SASS that is one kernel's own: its traces have the text of all kernels of the program.

    .version 8.6                                    .version 8.6
    .visible .entry fusion_1( ... ) { ... }   ->    .visible .entry fusion_2( ... ) { ... }
    .visible .entry fusion_2( ... ) { ... }

Of SASS instructions and labels are kept, without the directives before them. Origins are renumbered: those of SASS are lines of the PTX.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from xla_emitters.trace import Step, Trace

_FUNCTION = re.compile(r"^\s*(?:\.visible |\.weak |\.extern )*\.(?:entry|func)\b(?:\s*\(.*?\))?\s*([\w$.]+)")
_HEADER = re.compile(r"\.(?:version|target|address_size)\b")
_VARIABLE = re.compile(r"\.(?:shared|global|const)\b.*?\b([A-Za-z_$][\w$]*)(?:\[\d*\])?\s*(?:=.*)?;?$")
_SECTION = re.compile(r"//-+ \.text\.([\w$.]+)\s+-+")
_DEFINED = re.compile(r"(?m)^(?:(?:define|declare)\b.*?|attributes )?([@#!][\w$.]+)")
_NAMED = re.compile(r"[@#!][\w$.]+")
_DIRECTIVE = re.compile(r"\s*\.[a-z]|//")


def own_steps(trace: Trace, kernel: str) -> Iterator[Step]:
    """The steps of a kernel's trace, with its own part of code; a text without a function of its own is left as it is."""
    ptx = dict[int, int]()
    for step in trace:
        if step.ir is not None and step.stage == "llvm":
            yield replace(step, ir=_of_llvm_ir(step.ir, kernel))
            continue
        if step.ir is None or step.stage not in ("ptx", "sass"):
            yield step
            continue
        lines = step.ir.split("\n")
        find = _of_ptx if step.stage == "ptx" else _of_sass
        kept = find(step.ir, lines, step.origins, kernel)
        origins = tuple(step.origins[line] for line in kept) if step.origins else ()
        if step.stage == "ptx":
            ptx = {line + 1: number for number, line in enumerate(kept, 1)}
        else:
            origins = tuple(ptx.get(line, 0) for line in origins)
        sources = tuple(step.sources[line] for line in kept) if step.sources else ()
        yield replace(step, ir="\n".join(lines[line] for line in kept), sources=sources, origins=origins)


def _of_llvm_ir(text: str, kernel: str) -> str:
    """The kernel, the functions that it calls, and the globals, attributes and metadata that these name."""
    pieces = re.split(r"\n(?=; Function Attrs|define |declare |@|attributes #|!)", text)
    named = dict[str, str]()
    for piece in pieces[1:]:
        if (found := _DEFINED.search(piece)) is not None:
            named[found[1]] = piece
    if f"@{kernel}" not in named or text.count("\ndefine ptx_kernel") < 2:
        return text
    kept, pending = {f"@{kernel}"}, [f"@{kernel}"]
    while pending:
        for word in _NAMED.findall(named[pending.pop()]):
            if word in named and word not in kept:
                kept.add(word)
                pending.append(word)
    return "\n".join((pieces[0], *(piece for name, piece in named.items() if name in kept)))


def _is_own(name: str, lines: range, origins: Sequence[int], kernel: str) -> bool:
    """Whether a function is the kernel, or a function that only the kernel calls: lines of others have no origins."""
    return name == kernel or any(origins[lines.start : lines.stop])


@lru_cache(1)
def _functions_of_ptx(text: str) -> tuple[list[tuple[str, range]], list[int]]:
    """The functions of a PTX text with their lines, and the lines outside of them; kept for the next kernel of the same text."""
    functions, outside = list[tuple[str, range]](), list[int]()
    start, name, is_open = -1, "", False
    for number, line in enumerate(text.split("\n")):
        if start < 0 and (found := _FUNCTION.match(line)):
            start, name, is_open = number, found[1], False
        if start < 0:
            outside.append(number)
            continue
        is_open = is_open or "{" in line
        if line.startswith("}") or (line.endswith(";") and not is_open):
            functions.append((name, range(start, number + 1)))
            start = -1
    return functions, outside


def _of_ptx(text: str, lines: Sequence[str], origins: Sequence[int], kernel: str) -> list[int]:
    functions, outside = _functions_of_ptx(text)
    own = [number for name, at in functions if _is_own(name, at, origins, kernel) for number in at]
    if not own or len(functions) == 1:
        return [*range(len(lines))]
    words = {word for number in own for word in re.findall(r"[A-Za-z_$][\w$]*", lines[number])}
    variables = [n for n in outside if (found := _VARIABLE.match(lines[n].strip())) and found[1] in words]
    return sorted((*(number for number in outside if _HEADER.match(lines[number])), *variables, *own))


@lru_cache(1)
def _sections_of_sass(text: str) -> list[tuple[str, range]]:
    """The functions of a SASS text with the lines after their heads; kept like those of PTX."""
    lines = text.split("\n")
    ends = [number for number, line in enumerate(lines) if line.startswith("//-")] + [len(lines)]
    starts = ((number, found[1]) for number, line in enumerate(lines) if (found := _SECTION.match(line)))
    return [(name, range(start + 1, next(end for end in ends if end > start))) for start, name in starts]


def _of_sass(text: str, lines: Sequence[str], origins: Sequence[int], kernel: str) -> list[int]:
    sections, kept = _sections_of_sass(text), list[int]()
    for name, at in sections:
        if _is_own(name, at, origins, kernel) or len(sections) == 1:
            kept += (number for number in at if lines[number].strip() and not _DIRECTIVE.match(lines[number]))
    return kept or [*range(len(lines))]
