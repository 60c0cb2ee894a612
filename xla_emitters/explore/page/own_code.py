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
        kept = _of_ptx(lines, step.origins, kernel) if step.stage == "ptx" else _of_sass(lines, step.origins, kernel)
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
    return name == kernel or any(origins[line] for line in lines if line < len(origins))


def _of_ptx(lines: Sequence[str], origins: Sequence[int], kernel: str) -> list[int]:
    functions, outside = list[tuple[str, range]](), list[int]()
    start, name = -1, ""
    for number, line in enumerate(lines):
        if start < 0 and (found := _FUNCTION.match(line)):
            start, name = number, found[1]
        if start < 0:
            outside.append(number)
        elif line.startswith("}") or (
            line.endswith(";") and not any("{" in each for each in lines[start : number + 1])
        ):
            functions.append((name, range(start, number + 1)))
            start = -1
    own = [number for name, at in functions if _is_own(name, at, origins, kernel) for number in at]
    if not own or len(functions) == 1:
        return [*range(len(lines))]
    words = {word for number in own for word in re.findall(r"[A-Za-z_$][\w$]*", lines[number])}
    variables = [n for n in outside if (found := _VARIABLE.match(lines[n].strip())) and found[1] in words]
    return sorted((*(number for number in outside if _HEADER.match(lines[number])), *variables, *own))


def _of_sass(lines: Sequence[str], origins: Sequence[int], kernel: str) -> list[int]:
    starts = [(number, found[1]) for number, line in enumerate(lines) if (found := _SECTION.match(line))]
    ends = [number for number, line in enumerate(lines) if line.startswith("//-")] + [len(lines)]
    kept = list[int]()
    for start, name in starts:
        at = range(start + 1, next(end for end in ends if end > start))
        if _is_own(name, at, origins, kernel) or len(starts) == 1:
            kept += (number for number in at if lines[number].strip() and not _DIRECTIVE.match(lines[number]))
    return kept or [*range(len(lines))]
