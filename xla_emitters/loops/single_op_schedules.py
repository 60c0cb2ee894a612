"""The schedules of fusions that are one op: the loops that an op needs which is no element of a result alone.

    scatter, select_and_scatter, rng_bit_generator, windows        for a CPU, and for a GPU
    sort                                                           for a CPU; for a GPU if no library sorts by its comparator
    top_k                                                          for a CPU; a GPU has a library's sort

Ops that a schedule does not know (`has_single_op_schedule`) stay with the runtime: computations that are not of scalars alone, sizes
that loops would have to check.
"""

from __future__ import annotations

from collections.abc import Mapping

from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.loops.random_bits_schedule import emit_random_bits, has_random_schedule
from xla_emitters.loops.scatter_schedule import emit_scatter, has_scatter_schedule
from xla_emitters.loops.schedule import Schedule
from xla_emitters.loops.select_and_scatter_schedule import emit_select_and_scatter, has_select_and_scatter_schedule
from xla_emitters.loops.sort_schedule import emit_sort, has_library_sort, has_sort_schedule
from xla_emitters.loops.top_k_schedule import emit_top_k, has_top_k_schedule
from xla_emitters.loops.window_schedule import emit_windows, has_window_code


def has_single_op_schedule(op: BufferOp, *, is_cpu: bool) -> bool:
    """Whether the op alone is a fusion that has a schedule here."""
    match op.HLO.name:
        case "hlo.sort":
            return has_sort_schedule(op) and (is_cpu or not has_library_sort(op))
        case "hlo.dynamic_top_k" | "hlo.topk":
            return is_cpu and has_top_k_schedule(op)
        case "hlo.dynamic_reduce_window" | "hlo.reduce_window":
            return has_window_code(op)
        case "hlo.rng_bit_generator" | "hlo.dynamic_rng_bit_generator":
            return has_random_schedule(op)
        case "hlo.scatter":
            return has_scatter_schedule(op)
        case "hlo.select_and_scatter":
            return len(op.outputs) == 1 and has_select_and_scatter_schedule(op)
        case _:
            return False


SINGLE_OP_SCHEDULES: Mapping[str, Schedule] = {
    "hlo.dynamic_reduce_window": emit_windows,
    "hlo.dynamic_rng_bit_generator": emit_random_bits,
    "hlo.dynamic_top_k": emit_top_k,
    "hlo.reduce_window": emit_windows,
    "hlo.rng_bit_generator": emit_random_bits,
    "hlo.scatter": emit_scatter,
    "hlo.select_and_scatter": emit_select_and_scatter,
    "hlo.sort": emit_sort,
    "hlo.topk": emit_top_k,
}
"""Op alone in a fusion -> function that writes its loops."""
