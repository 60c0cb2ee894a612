"""What one compilation did, as plain records: the single source of every dump, page, diff and timing.

    Trace
      Step("xla-flatten-tensors", stage=None, ir="module ...", seconds=0.0021, op_counts={"arith.mulf": 6, ...})
      Step("loop-invariant-code-motion", stage="flat", ...)
      Remark("xla-vectorize-loads-stores", "skipped scf.for: step is not 1", "tanh_0 (gelu.hlo:19:3)")

A step whose IR was not recorded (the fast path) has `ir=None`; times and op counts are there whenever they were asked for.
Nothing here imports xDSL: a trace can be read back from JSON on a machine that has only Python.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Remark:
    """Something a pass chose not to do, and why. `place` is the HLO instruction or source position it speaks of."""

    pass_name: str
    text: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.pass_name}: {self.text}" + (f" at {self.place}" if self.place else "")


@dataclass(frozen=True)
class Step:
    """The module after one pass (or after emission, or a tool).

    name       the pass, as on the command line
    stage      the stage whose boundary this step is (`conventions.md`), or None
    ir         its text, or None when not recorded
    seconds    time the pass took
    op_counts  op name -> how many; {} when not recorded
    """

    name: str
    stage: str | None
    ir: str | None
    seconds: float
    op_counts: dict[str, int] = field(default_factory=dict[str, int])
    remarks: tuple[Remark, ...] = ()

    @property
    def ops(self) -> int:
        return sum(self.op_counts.values())


@dataclass
class Trace:
    """The steps of one kernel's compilation, in order.

    name   of the kernel
    """

    name: str = ""
    steps: list[Step] = field(default_factory=list[Step])

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, stage: str) -> Step:
        """The step that is the boundary of `stage`, or the last run of the pass of that name.

        raises KeyError naming the stages that there are.
        """
        for step in reversed(self.steps):
            if step.stage == stage or (step.stage is None and step.name == stage):
                return step
        raise KeyError(f"no stage '{stage}' in this trace; there are: {', '.join(self.stages)}")

    @property
    def stages(self) -> tuple[str, ...]:
        return tuple(step.stage for step in self.steps if step.stage)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        return tuple(remark for step in self.steps for remark in step.remarks)

    def diff(self, before: str, after: str) -> str:
        """A unified diff of the IR at two stages."""
        one, two = self[before], self[after]
        if one.ir is None or two.ir is None:
            raise KeyError("this trace was recorded without IR; compile with record=True")
        lines = difflib.unified_diff(
            one.ir.splitlines(), two.ir.splitlines(), fromfile=before, tofile=after, lineterm=""
        )
        return "\n".join(lines)
