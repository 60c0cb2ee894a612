"""Our PTX of the corpus's fusions: whole grids of those whose arrays have up to 16 MB, else 64 blocks; with the sanitizer."""

import time
from collections.abc import Iterator

from runtime.corpus import CORPUS, files

from lab.ptx.rows import Row
from xla_emitters.dtypes import dtype
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.check.check import check
from xla_emitters.pipelines.compiler import compile

MOST_BYTES = 16 << 20
BLOCKS = 64
TARGETS = {"sm_90": 1, "sm_75": 7, "sm_80": 7, "sm_100": 7}
"""Architecture -> each n-th file: 410 or 59."""


def rows(every: int, first: int) -> Iterator[Row]:
    for number, (target, step) in enumerate(TARGETS.items()):
        for name in files()[number if step > 1 else 0 :: step][first::every]:
            yield row(name, target)


def blocks_of(name: str, target: str) -> int:
    """How many blocks of a file's kernels are run; 0: all."""
    program = compile(CORPUS / name, target=target, stage="hlo", record="none")
    arrays = (*program.parameters, *program.results)
    size = sum(dtype(spec.dtype).size_bytes(spec.elements) for spec in arrays)
    return 0 if size <= MOST_BYTES else BLOCKS


def row(name: str, target: str) -> Row:
    """The LLVM dialect against NumPy, then LLVM IR and PTX: the same bits as before, or within the ops' bounds where it calls libdevice."""
    start = time.process_time()
    try:
        blocks = blocks_of(name, target)
        verdict = check(CORPUS / name, stages="llvm-dialect,llvm,ptx", target=target, blocks=blocks, verify=False)
        ok, said = verdict.ok, verdict.summary
        if not ok:
            said = "\n    ".join((said, *verdict.details))
    except XlaEmittersError as error:
        ok, said, blocks = False, error.message, 0
    seconds = time.process_time() - start
    same = "bit-identical to NumPy" if "bit-identical to" in said else "within the ops' bounds"
    counted = (target, "whole grids" if not blocks else f"by {BLOCKS} blocks", same if ok else "wrong")
    return Row(f"{target:6} {name:58} {seconds:6.1f} s  {said}", ok, counted)
