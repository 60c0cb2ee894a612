"""PTX of several modules as the PTX of one module with all their kernels, byte for byte.

    ["... // .globl a  .visible .entry a( ... $L__BB0_2 ...",           "... // .globl a  ... $L__BB0_2 ...
     "... // .globl b  .visible .entry b( ... $L__BB0_7 ..."]    ->          // .globl b  ... $L__BB1_7 ..."

LLVM numbers labels and stacks by function, so both are numbered anew. It says first which shared variables it moved into the function that
uses them; these lines are sorted by kernel. What else a module has besides its entries depends on all of them (tables and functions of
libdevice, which are there once) or on the lines (debug information): such texts are not joined.
Source: LLVM 22, NVPTXAsmPrinter.cpp (the order of a module's parts), AsmPrinter.cpp (the numbers of functions).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_FUNCTION = "\t// .globl\t"
_ENTRY = ".visible .entry "
_END = "\n}\n"
_DEMOTED = re.compile(r"^// (\S+) has been demoted\n", re.M)
_SHARED = re.compile(r"^\t// demoted variable\n\t\.shared .*?([\w$.]+)(?:\[\d*\])*;$", re.M)
_NUMBERED = re.compile(r"(\$L__BB|\b__local_depot)\d+(?=_|\b)")
_OTHER_LABEL = re.compile(r"\$L(?!__BB\d)")


def join_ptx(parts: Sequence[str], kernels: Sequence[str]) -> str | None:
    """The PTX of one module.

    parts    PTX of modules with one target, each with some of the kernels, in whatever order
    kernels  the entries of all parts, in the order of the one module
    returns  None where a part has more than entries, see the file's head
    """
    headers, entries, variables = set[str](), dict[str, str](), dict[str, list[str]]()
    for part in parts:
        header, *functions = part.split(_FUNCTION)
        headers.add(header)
        demoted = list[str]()
        for function in functions:
            name, _, text = function.partition("\n")
            before, found, entry = text.partition(_ENTRY)
            demoted += _DEMOTED.findall(before)
            ends_here = entry.endswith(_END) and entry.count(_END) == 1
            if not (found and ends_here) or _DEMOTED.sub("", before).strip() or _OTHER_LABEL.search(entry):
                return None
            entries[name] = found + entry
            own = set(_SHARED.findall(entry))
            variables[name] = [variable for variable in demoted if variable in own]
            demoted = [variable for variable in demoted if variable not in own]
        if demoted:
            return None
    if len(headers) != 1 or entries.keys() != set(kernels):
        return None
    before = "".join(f"// {variable} has been demoted\n" for name in kernels for variable in variables[name])
    texts = [_numbered(entries[name], number) for number, name in enumerate(kernels)]
    first, *others = (f"{_FUNCTION}{name}\n" for name in kernels)
    heads = [f"{first}{before}\n", *others]
    return headers.pop() + "".join(head + text for head, text in zip(heads, texts, strict=True))


def _numbered(entry: str, number: int) -> str:
    return _NUMBERED.sub(lambda found: f"{found[1]}{number}", entry)
