"""What each op does, in one sentence: of HLO, of the dialects that kernels have, of PTX, of machine code.

    sentences()["ptx"]["fma"]       "a * b + c, rounded once."

They are in `opcodes.txt`, but for ops of HLO whose class has one as its docstring.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from xla_emitters.dialects.hlo import ALL_OPS

SPELLINGS = ("hlo", "mlir", "ptx", "sass")
"""The parts of the table: an opcode of HLO, `dialect.op`, the first word of an instruction of PTX and of SASS."""


@cache
def sentences() -> dict[str, dict[str, str]]:
    """Part -> name -> sentence."""
    found: dict[str, dict[str, str]] = {part: {} for part in SPELLINGS}
    part = found["hlo"]
    for line in files("xla_emitters.explore").joinpath("opcodes.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            part = found[line.strip("[]")]
        elif line and not line.startswith("#"):
            names, _, sentence = line.partition(": ")
            part |= dict.fromkeys(names.split(", "), sentence)
    own = {name: " ".join((op.__doc__ or "").partition("\n\n")[0].split()) for name, op in ALL_OPS.items()}
    return found | {"hlo": own | found["hlo"]}
