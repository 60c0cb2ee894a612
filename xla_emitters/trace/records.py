"""What one compilation did, as plain records: the single source of every dump, page, diff, explanation and timing.

    Trace "gelu"
      Step("emit", stage="xla_gpu", ir="module ...", seconds=0.0141, op_counts={"arith.mulf": 6, ...}, decisions=(...))
      Step("xla-flatten-tensors", stage=None, ir="module ...", seconds=0.0021, ...)
      Step("xla-loop-invariant-code-motion", stage="flat", ...)
      Remark("xla-vectorize-loads-stores", "skipped scf.for: step is not 1", "tanh_0 (gelu.hlo:19:3)")

A step whose IR was not recorded (the fast path) has `ir=None`; times and op counts are recorded if they were asked for.
`Trace.to_json` is documented in docs/trace.md; its "schema" number is raised when a reader of the old format would misread the new one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any

from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:
    from xla_emitters.trace.html import Html

SCHEMA = 1
MOST_STAGES = 16
"""Of which the outline has a row."""


@dataclass(frozen=True)
class Remark:
    """Something a pass declined, and why (`skipped ...`), or did and a user should know; or a warning, which is always printed.

    place  the HLO instruction or source position that the remark is about
    help   for a warning: what to do; "" for a remark that is not a warning
    """

    pass_name: str
    text: str
    place: str = ""
    help: str = ""

    def __str__(self) -> str:
        return f"{self.pass_name}: {self.text}" + (f" at {self.place}" if self.place else "")


@dataclass(frozen=True)
class Decision:
    """A choice that was made, and why.

    topic   "emitter", "launch", "partition", "access" ...
    text    one line for a person
    data    the same in machine-readable form: names, numbers, lists
    """

    topic: str
    text: str
    data: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Rewrite:
    """One change that a pass made.

    pattern  the pattern that matched, "fold", "dead code" ...; of a pass that walks by itself its function that made the change
    op       the name of the op that was matched or erased; "": it is not known
    line     its line in the text before, from 1; 0: not known
    added    names of the ops that are new, in the order of the text
    erased   of those that are gone
    changed  of those with other operands, types or attributes
    ir       the text after it
    """

    pattern: str
    op: str
    line: int
    added: tuple[str, ...]
    erased: tuple[str, ...]
    changed: tuple[str, ...]
    ir: str = field(repr=False)


@dataclass(frozen=True)
class Step:
    """The module after one pass (or after emission, or a tool).

    name       the pass, as on the command line
    stage      the stage that ends with this step, or None
    ir         its text, or None when not recorded
    seconds    time the pass took
    op_counts  op name -> how many; {} when not recorded
    remarks    what the pass declined
    decisions  what it chose
    sources    for each line of `ir`, the HLO instructions that it comes from; () when not recorded
    origins    for each line of PTX, the line of the stage `llvm-dialect` that it comes from; for each line of SASS, the line of PTX.
               Lines count from 1; 0 for a line without an origin; () when not recorded
    rewrites   the single changes that the pass made, in order, if they were asked for: the last one's text is `ir`
    left_out   how many more there were; what they changed is in the last of `rewrites`
    """

    name: str
    stage: str | None
    ir: str | None = field(repr=False)
    seconds: float
    op_counts: dict[str, int] = field(default_factory=dict[str, int], repr=False)
    remarks: tuple[Remark, ...] = field(default=(), repr=False)
    decisions: tuple[Decision, ...] = field(default=(), repr=False)
    sources: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    origins: tuple[int, ...] = field(default=(), repr=False)
    rewrites: tuple[Rewrite, ...] = field(default=(), repr=False)
    left_out: int = 0

    @property
    def ops(self) -> int:
        return sum(self.op_counts.values())

    def to_json(self) -> dict[str, Any]:
        """Plain data: "ms" for `seconds`, the other names as they are."""
        data = asdict(self)
        data["ms"] = data.pop("seconds") * 1e3
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Step:
        """The inverse of `to_json`."""
        return Step(
            name=data["name"],
            stage=data["stage"],
            ir=data["ir"],
            seconds=data["ms"] / 1e3,
            op_counts=dict(data["op_counts"]),
            remarks=tuple(Remark(**remark) for remark in data["remarks"]),
            decisions=tuple(Decision(**decision) for decision in data["decisions"]),
            sources=tuple(tuple(names) for names in data["sources"]),
            origins=tuple(data.get("origins", ())),
            rewrites=tuple(map(_rewrite_from_json, data.get("rewrites", ()))),
            left_out=data.get("left_out", 0),
        )


def _rewrite_from_json(data: Mapping[str, Any]) -> Rewrite:
    added, erased, changed = (tuple(map(str, data[key])) for key in ("added", "erased", "changed"))
    return Rewrite(data["pattern"], data["op"], data["line"], added, erased, changed, data["ir"])


@dataclass(frozen=True)
class Line:
    """One line of a stage's text.

    number   from 1
    text     the line
    sources  the HLO instructions that it comes from
    op       for PTX and SASS, the line of the stage `llvm-dialect` that it comes from, counted from 1; 0: none
    ptx      for SASS, the line of PTX, likewise
    """

    number: int
    text: str
    sources: tuple[str, ...]
    op: int = 0
    ptx: int = 0


@dataclass(repr=False)
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

    def __getitem__(self, point: str | int) -> Step:
        """The step at the end of a stage, else the last run of the pass of that name, or the step of that number.

        raises KeyError naming the stages that exist.
        """
        if isinstance(point, int):
            if not 0 <= point < len(self.steps):
                raise KeyError(f"no step {point} in this trace; there are 0 to {len(self.steps) - 1}")
            return self.steps[point]
        for step in reversed(self.steps):
            if step.stage == point or (step.stage is None and step.name == point):
                return step
        raise KeyError(f"no stage '{point}' in this trace; there are: {', '.join(self.stages)}")

    @property
    def stages(self) -> tuple[str, ...]:
        return tuple(step.stage for step in self.steps if step.stage)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        return tuple(remark for step in self.steps for remark in step.remarks)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return tuple(decision for step in self.steps for decision in step.decisions)

    def timed(self, *, every_pass: bool = False) -> Iterator[tuple[Step, float]]:
        """The last step of every stage, or every step, with the seconds of all passes since the previous one."""
        seconds = 0.0
        for step in self.steps:
            seconds += step.seconds
            if every_pass or step.stage:
                yield step, seconds
                seconds = 0.0

    def changed(self) -> tuple[bool, ...]:
        """For each step, whether its IR differs from the last recorded IR before it; True for the first."""
        answers, before = list[bool](), None
        for step in self.steps:
            answers.append(step.ir is not None and step.ir != before)
            before = step.ir if step.ir is not None else before
        return tuple(answers)

    def lines(self, stage: str) -> tuple[Line, ...]:
        """Where each line of a stage comes from, down to SASS if the program was compiled with `line_info`.

        raises KeyError for a stage that was not recorded with its IR
        """
        step, text = self[stage], self._ir_at(stage).split("\n")
        sources = step.sources or ((),) * len(text)
        origins = step.origins or (0,) * len(text)
        ptx = self["ptx"].origins if step.stage == "sass" and step.origins else ()
        ops = tuple(ptx[line - 1] if line else 0 for line in origins) if ptx else origins
        of_ptx = origins if ptx else (0,) * len(text)
        rows = zip(text, sources, ops, of_ptx, strict=True)
        return tuple(Line(number, *row) for number, row in enumerate(rows, 1))

    def diff(self, before: str | int, after: str | int) -> str:
        """A unified diff of the IR at two points, each a stage, a pass or a step's number."""
        one, two = self._ir_at(before), self._ir_at(after)
        lines = difflib.unified_diff(
            one.splitlines(), two.splitlines(), fromfile=str(before), tofile=str(after), lineterm=""
        )
        return "\n".join(lines)

    def show_diff(self, before: str | int, after: str | int) -> Html:
        """`diff` for notebooks."""
        from xla_emitters.trace.html import diff_html

        names = (self[before].name, self[after].name)
        return diff_html(self._ir_at(before), self._ir_at(after), names=names)

    def _ir_at(self, point: str | int) -> str:
        if (ir := self[point].ir) is None:
            raise KeyError("this trace was recorded without IR there; compile with record='stages' or 'passes'")
        return ir

    def to_json(self) -> dict[str, Any]:
        """Plain data, documented in docs/trace.md."""
        return {"schema": SCHEMA, "name": self.name, "steps": [step.to_json() for step in self.steps]}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Trace:
        """The inverse of `to_json`. raises ValueError for another schema number."""
        if data.get("schema") != SCHEMA:
            raise ValueError(f"a trace of schema {data.get('schema')}; this is a reader of schema {SCHEMA}")
        return Trace(data["name"], [Step.from_json(step) for step in data["steps"]])

    def show(self, *stages: str) -> Html:
        """For notebooks: the HLO and every stage, or those of `stages`, side by side; of a large program, tens of megabytes for all.

        raises KeyError for a stage that was not recorded
        """
        from xla_emitters.trace.html import Html, trace_html

        steps = (
            [self[stage] for stage in ("hlo", *stages) if stage != "hlo" or stage in self.stages]
            if stages
            else self.steps
        )
        return Html(trace_html(self.name, steps))

    def __repr__(self) -> str:
        """At most 20 lines: a row for each stage, and how to see its IR.

        trace of fusion: 46 steps
          stage          ops       ms    lines of IR
          xla_gpu         57      8.1             64
          ...
          more: print(trace["ptx"].ir); print(trace.diff("llvm-dialect", "ptx")); trace.show("llvm-dialect", "ptx")
        """
        from xla_emitters.support.columns import aligned  # imported here: few traces are printed

        rows, with_ir = [("stage", "ops", "ms", "lines of IR")], list[str]()
        for step, seconds in self.timed():
            stage, lines = step.stage or "", "" if step.ir is None else str(step.ir.count("\n") + 1)
            rows.append((stage, str(step.ops or ""), f"{seconds * 1e3:.1f}", lines))
            with_ir += [stage] if lines else []
        others = len(rows) - 1 - MOST_STAGES
        lines = [
            *(aligned(rows[: MOST_STAGES + 1], right={1, 2, 3}) if rows[1:] else []),
            *([f"{others} more stages"] if others > 0 else []),
            f"more: {_more(with_ir)}",
        ]
        title = f"trace of {self.name or 'nothing'}: {len(self)} steps"
        return "\n".join([title, *(f"  {line.rstrip()}" for line in lines)])

    def _repr_html_(self) -> str:
        """For notebooks: a row for each stage, and how to see its IR."""
        from xla_emitters.trace.html import text_html

        return text_html(repr(self))


def _more(stages: list[str]) -> str:
    """Expressions that show the IR of these stages."""
    if not stages:
        return "recorded without IR; compile with record='stages' or 'passes'"
    last, before = stages[-1], stages[-2] if len(stages) > 1 else stages[-1]
    return f'print(trace["{last}"].ir); print(trace.diff("{before}", "{last}")); trace.show("{before}", "{last}")'
