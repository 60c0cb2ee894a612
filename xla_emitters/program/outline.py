"""What a program is, on one screen: its arrays, its kernels and library calls, the dearest first, and how to see more.

    jit_step for h200: a module of 27 kernels and 6 library calls, 71.1 us
      f32[128], f32[64], f32[64,128], ... 12 arrays -> f32[128], f32[64], ... 11 arrays
      share     time  what                        how        launch        source
        4 %  2.27 us  gemm_fusion_dot.3.dot.0     call gemm                train.py:14 in model
       ...
      18 more     53 % of the time
      times: 2 us a launch, and bytes at the chip's bandwidth or products at its peak, whichever takes longer
      more: print(p.explain()); p.kernels[0].ptx; ...

Both kinds of programs make an `Outline`; `repr`, the card in a notebook and the summary of `explain` are views of it. It is made of values,
without compiling or running anything, so that printing a program is always fast; the times are therefore those of `least_time`, and the
model of `xla-emitters cost` is more exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from math import prod
from typing import Any

from xla_emitters.device import Device
from xla_emitters.support.columns import aligned
from xla_emitters.support.units import microseconds
from xla_emitters.trace.python_source import source_text

START_US = 2.0
"""Microseconds from one kernel's end to the next one's first instruction, and to its own end, as expected by the cost model."""
MOST_LINES = 20
MOST_ROWS = 200
"""Rows of a card: a program may have thousands of kernels."""
_WIDTH = 150
_CELL_WIDTH = 60
_HEAD = ("share", "time", "what", "how", "launch", "source")
_TO_THE_RIGHT = frozenset((0, 1))
TIMES = f"times: {START_US:g} us a launch, and bytes at the chip's bandwidth or products at its peak, whichever takes longer"


@dataclass(frozen=True)
class Work:
    """A kernel, a library call, or a copy.

    name     of the kernel, of the call's instruction, or "p0 -> r0"
    how      "reduction", "kStitch" ...; for a call "call gemm"; "copy"
    launch   its blocks and threads; "" if they are not known
    runs     how often one run of the program executes it: a loop of unknown length counts once, and every branch does
    time     expected microseconds of one run; None if a size depends on data
    unusual  what a reader should know of it: "it has fewer blocks than half of the 132 multiprocessors"
    source   the lines of Python that it computes, as plain data: see `trace.python_source`
    """

    name: str
    how: str
    launch: str
    runs: int
    time: float | None
    unusual: tuple[str, ...] = ()
    source: tuple[Mapping[str, Any], ...] = ()

    @property
    def kind(self) -> str:
        """ "kernel", "library call" or "copy" """
        return "copy" if self.how == "copy" else "library call" if self.how.startswith("call ") else "kernel"

    @property
    def total(self) -> float:
        """Microseconds of all its runs; 0 if not known."""
        return (self.time or 0.0) * self.runs


@dataclass(frozen=True)
class Outline:
    """A program on one screen.

    head        name, device and kind; of a compilation the kind alone, "27 kernels and 6 library calls", or "" before there are any
    work        in program order
    remarks     what is unusual about the whole program
    facts       further lines, such as the sizes at which times are expected
    more        expressions and commands that show more
    arrays      types of parameters, and of results
    times       what the times are
    """

    head: str
    work: tuple[Work, ...] = ()
    remarks: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    arrays: tuple[Sequence[str], Sequence[str]] = ((), ())
    times: str = TIMES

    def by_price(self) -> list[Work]:
        """The work, dearest first; in program order where it costs the same."""
        return sorted(self.work, key=lambda each: -each.total)

    @property
    def fusions(self) -> list[Work]:
        """The work that kernels do, in program order."""
        return [each for each in self.work if each.kind == "kernel"]

    @property
    def time(self) -> float:
        """Microseconds of all work."""
        return sum(each.total for each in self.work)

    def title(self) -> str:
        """One line: what it is, and how long it takes."""
        expected = f", {microseconds(self.time)}" if self.time else ""
        return f"{self.head}{expected}"

    def signature(self) -> str:
        """Types of parameters and results in one line; of many, the first ones and their number."""
        return " -> ".join(_some(types) for types in self.arrays)

    def unusual(self) -> list[str]:
        """What is unusual, a line each: kernels of which the same is said share one."""
        about = dict[str, list[Work]]()
        for each in self.by_price():
            for said in each.unusual:
                about.setdefault(said, []).append(each)
        return [
            *self.remarks,
            *(f"{percent(works, self.time)}: {said}: {_named(works)}" for said, works in about.items()),
        ]

    def table(self, most: int) -> list[str]:
        """The `most` dearest rows as lines, and a line for the others."""
        works = self.by_price()
        if not works:
            return []
        shown = works[:most]
        rows = _without_empty_columns([_HEAD, *(self._cells(each) for each in shown)])
        lines = aligned(rows, right=_TO_THE_RIGHT)
        if others := works[most:]:
            lines.append(f"{len(others)} more take{'s' * (len(others) == 1)} {percent(others, self.time)} of the time")
        return lines

    def summary(self) -> list[str]:
        """The lines with which `explain` begins: the dearest rows, and all that is unusual."""
        unusual = self.unusual()
        said = [*(["unusual"] if unusual else []), *(f"  {line}" for line in unusual), *self.facts]
        return [
            self.title(),
            *(f"  {line}" for line in [self.signature(), *self.table(15), *said, *([self.times] if self.work else [])]),
        ]

    def to_json(self) -> dict[str, Any]:
        """The same as plain data, without arrays: `work`, the dearest first, and what is `unusual`."""
        return {"work": [asdict(each) for each in self.by_price()], "unusual": self.unusual()}

    def text(self) -> str:
        """At most MOST_LINES lines."""
        unusual = self.unusual()
        end = [
            *self.facts,
            *([self.times] if self.work else []),
            *(f"more: {'; '.join(self.more)}" for _ in self.more[:1]),
        ]
        end = [*(f"unusual: {line}" for line in unusual[:2]), *end][: MOST_LINES - 5]
        room = MOST_LINES - len(end) - 4
        lines = [self.signature(), *self.table(room), *end]
        return "\n".join([_clipped(self.title()), *(f"  {_clipped(line)}" for line in lines)])

    def html(self) -> str:
        """The same as a card for notebooks, with up to MOST_ROWS rows."""
        works = self.by_price()
        left = f"<p>{len(works) - MOST_ROWS} more.</p>" if len(works) > MOST_ROWS else ""
        rows = _without_empty_columns([_HEAD, *(self._cells(each) for each in works[:MOST_ROWS])]) if works else []
        body = "".join(
            f"<tr>{''.join(_html_cell(column, cell) for column, cell in enumerate(row))}</tr>" for row in rows
        )
        table = f'<div class="xe-rows"><table>{body}</table></div>{left}' if works else ""
        unusual = "".join(f"<li>{escape(_clipped(line))}</li>" for line in self.unusual()[:10])
        notes = [*self.facts, *([self.times] if works else [])]
        more = " ".join(f"<code>{escape(each)}</code>" for each in self.more)
        return (
            f'<div class="xe-card"><style>{_STYLE}</style><p><b>{escape(_clipped(self.title()))}</b></p>'
            f"<p><code>{escape(_clipped(self.signature()))}</code></p>"
            f"{table}{f'<p>Unusual</p><ul>{unusual}</ul>' if unusual else ''}"
            f"{''.join(f'<p>{escape(_clipped(line))}</p>' for line in notes)}<p>More: {more}</p></div>"
        )

    def _cells(self, work: Work) -> tuple[str, ...]:
        times = f" x {work.runs}" if work.runs != 1 else ""
        return (
            percent([work], self.time) if work.time is not None else "?",
            microseconds(work.time) + times if work.time is not None else "data decides",
            *(_clipped(cell, _CELL_WIDTH) for cell in (work.name, work.how, work.launch, source_text(work.source))),
        )


_STYLE = """
.xe-card { font:13px system-ui,sans-serif; border:1px solid #8888; border-radius:6px; padding:4px 12px; overflow:hidden; }
.xe-card p { margin:6px 0; overflow-wrap:anywhere; } .xe-card ul { margin:0 0 6px; padding-left:20px; }
.xe-card .xe-rows { max-height:26em; overflow:auto; } .xe-card table { border-collapse:collapse; font-size:12px; }
.xe-card tr:first-child { font-weight:bold; } .xe-card td { padding:2px 14px 2px 0; white-space:nowrap; border:0; }
.xe-card tr { border-bottom:1px solid #8883; } .xe-card .xe-n { text-align:right; font-variant-numeric:tabular-nums; }
.xe-card code { font-size:12px; background:none; color:inherit; padding:0; margin-right:1em; }
"""


def least_time(chip: Device, moved: float, operations: float = 0.0, factors: str = "tf32") -> float:
    """Microseconds of one launch: its start, and the longer of moving `moved` bytes and of `operations` of a matrix product.

    factors  type of the product's factors, as in `Device.peak`
    """
    seconds = max(moved / chip.bandwidth_bytes_per_s, operations / chip.peak(factors) if operations else 0.0)
    return START_US + 1e6 * seconds


def product_operations(shapes: Sequence[Sequence[int]], batch: int = 1) -> float:
    """Operations of a product of two matrices from the shapes of factors and result: (bmk, bkn, bmn) -> 2bmkn.

    >>> product_operations([(4, 64, 128), (4, 128, 256), (4, 64, 256)], batch=4) == 2 * 4 * 64 * 128 * 256
    True
    """
    return 2.0 * (float(prod(map(prod, shapes))) / batch) ** 0.5


_FACTORS = {"f64": "f64", "c128": "f64", "f16": "f16", "bf16": "bf16", "s8": "s8", "u8": "s8", "s4": "s8", "u4": "s8"}


def factors_of(dtype: str) -> str:
    """The row of `Device.peak` for factors of that HLO type; f32 is multiplied as tf32, as XLA does by default."""
    return "f8" if dtype.startswith("f8") else _FACTORS.get(dtype, "tf32")


# ------------------------------------------------------------------------------------------------------------------ text


def _html_cell(column: int, text: str) -> str:
    return f"<td{' class=xe-n' * (column in _TO_THE_RIGHT)}>{escape(text)}</td>"


def _without_empty_columns(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Rows without the columns that are empty but for their head."""
    kept = [column for column in zip(*rows, strict=True) if any(column[1:])]
    return list(zip(*kept, strict=True))


def percent(works: Sequence[Work], whole: float) -> str:
    """The share of some work in the time of all."""
    share = sum(each.total for each in works) / whole if whole else 0.0
    return f"{share:.0%}" if share >= 0.005 else "under 1%"


def _named(works: Sequence[Work]) -> str:
    others = len(works) - 2
    return ", ".join(each.name for each in works[:2]) + (f" and {others} more" if others > 0 else "")


_MOST_TYPES = 3


def _clipped(text: str, most: int = _WIDTH) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def _some(types: Sequence[str]) -> str:
    if len(types) <= _MOST_TYPES + 1:
        return f"({', '.join(types)})"
    return f"({', '.join(types[:_MOST_TYPES])}, ... {len(types)} arrays)"


def work_named(works: Sequence[Work], kernel: str) -> Work | None:
    """The work of a kernel: its own, or its fusion's, which may have several kernels: `main_kStitch_reduce_3_vec4` is one of them."""
    named = {work.name: work for work in works}
    return named.get(kernel) or next((work for name, work in named.items() if kernel.startswith(f"{name}_")), None)


def no_kernels(stage: str) -> str:
    """What is said of a program whose compilation stopped before there were kernels."""
    return f"compiled to the stage '{stage}', where it has no kernels yet"


def counted_work(works: Sequence[Work]) -> str:
    """ "27 kernels and 6 library calls" """
    counts = Counter(each.kind for each in works)
    parts = [f"{counts[kind]} {kind if counts[kind] == 1 else plural}" for kind, plural in _KINDS if counts[kind]]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) or "no kernels"


_KINDS = (("kernel", "kernels"), ("library call", "library calls"), ("copy", "copies"))
