"""The schedules of fusions that are one op: the loops that an op needs which is no element of a result alone.

    scatter, select_and_scatter, rng_bit_generator, windows        for a CPU, and for a GPU
    sort                                                           for a CPU; for a GPU if no library sorts by its comparator
    top_k                                                          for a CPU; a GPU has a library's sort

Ops that a schedule does not know (`has_single_op_schedule`) stay with the runtime: computations that are not of scalars alone, sizes
that loops would have to check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dynamic.loops.schedule import Schedule


def schedule_in(stem: str, name: str) -> Callable[..., Any]:
    """A function of a schedule's file, which is loaded when it is called first: few programs need it."""

    def function(*arguments: Any, **named: Any) -> Any:
        return getattr(import_module(f"xla_emitters.dynamic.loops.{stem}_schedule"), name)(*arguments, **named)

    return function


def has_single_op_schedule(op: BufferOp, *, is_cpu: bool) -> bool:
    """Whether the op alone is a fusion that has a schedule here."""
    match op.HLO.name:
        case "hlo.sort":
            from xla_emitters.dynamic.loops.sort_schedule import has_library_sort, has_sort_schedule

            return has_sort_schedule(op) and (is_cpu or not has_library_sort(op))
        case "hlo.dynamic_top_k" | "hlo.topk":
            return is_cpu and schedule_in("top_k", "has_top_k_schedule")(op)
        case "hlo.dynamic_reduce_window" | "hlo.reduce_window":
            return schedule_in("window", "has_window_code")(op)
        case "hlo.rng_bit_generator" | "hlo.dynamic_rng_bit_generator":
            return schedule_in("random_bits", "has_random_schedule")(op)
        case "hlo.scatter":
            return schedule_in("scatter", "has_scatter_schedule")(op)
        case "hlo.select_and_scatter":
            return len(op.outputs) == 1 and schedule_in("select_and_scatter", "has_select_and_scatter_schedule")(op)
        case _:
            return False


SINGLE_OP_SCHEDULES: Mapping[str, Schedule] = {
    "hlo.dynamic_reduce_window": schedule_in("window", "emit_windows"),
    "hlo.dynamic_rng_bit_generator": schedule_in("random_bits", "emit_random_bits"),
    "hlo.dynamic_top_k": schedule_in("top_k", "emit_top_k"),
    "hlo.reduce_window": schedule_in("window", "emit_windows"),
    "hlo.rng_bit_generator": schedule_in("random_bits", "emit_random_bits"),
    "hlo.scatter": schedule_in("scatter", "emit_scatter"),
    "hlo.select_and_scatter": schedule_in("select_and_scatter", "emit_select_and_scatter"),
    "hlo.sort": schedule_in("sort", "emit_sort"),
    "hlo.topk": schedule_in("top_k", "emit_top_k"),
}
"""Op alone in a fusion -> function that writes its loops."""
