"""LLVM IR of modules and programs, launched through the stand-in for CuPy in the place of PTX, against JAX's values; and damaged texts."""

import random
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from unit.text.llvm_ir.damaged_llvm_ir import damaged, how_it_ends
from unit.text.ptx.damaged_ptx import FILES, SECONDS, source

from lab.ptx import modules, programs
from lab.ptx.rows import Row
from xla_emitters.lowering.toolchain.toolchain import PtxCompiler, ToolTexts
from xla_emitters.text import ptx as ptx_text
from xla_emitters.text.llvm_ir import raise_kernel, read_llvm_ir

SEEDS = 1000


@contextmanager
def llvm_ir_as_ptx() -> Generator[None]:
    """What makes PTX returns the LLVM IR that it is made from, and the stand-in for CuPy loads that."""
    finish = PtxCompiler.finish_both

    def given(self: PtxCompiler, module: Any) -> ToolTexts:
        texts = finish(self, module)
        return ToolTexts(texts.llvm_ir, texts.llvm_ir)

    def raised(module: Any, entry: Any, numbers: Any = ()) -> Any:
        return raise_kernel(module, entry)

    with pytest.MonkeyPatch.context() as patch:
        # The stand-in takes its reader from there each time it is loaded.
        patch.setattr(ptx_text, "read_ptx", read_llvm_ir)
        patch.setattr(ptx_text, "raise_kernel", raised)
        patch.setattr(PtxCompiler, "finish", lambda self, module: given(self, module).ptx)
        patch.setattr(PtxCompiler, "finish_both", given)
        yield


def rows(every: int, first: int) -> Iterator[Row]:
    with llvm_ir_as_ptx():
        yield from programs.rows(every, first)
        yield from modules.rows(every, first)
    for number, file in enumerate(FILES):
        text, arrays, launch = source(file, "llvm")
        for seed in range(number + first, SEEDS, every):
            what, wrong = damaged(random.Random(f"{file} {seed}"), text)
            try:
                ending = how_it_ends(wrong, arrays, launch)
            except Exception as error:  # a bug, which is shown in its row
                yield Row(f"{file} {seed} {what}: {type(error).__name__}: {error}", False, ("failed",))
                continue
            ok = ending.is_located and ending.seconds < SECONDS
            yield Row("" if ok else f"{file} {seed} {what}: {ending}", ok, (ending.outcome,))
