"""Compares each kernel of a program with NumPy, on the kernel's real inputs.

    check_kernels(program, arrays, "llvm-dialect")
      main_kStitch_reduce_0    ok    launched once: main_kStitch_reduce_0_vec4_warp
      main_kLoop_add_1         r[3, 5] of %add.53 is 2.5, not 2.25

Before each fusion of the program a `lmhlo.watch` op passes the fusion's inputs to this file, after it another one its outputs. In between
the program runs its own kernels, at the given stage. The same ops then run by NumPy on copies of the inputs, so a kernel is
judged by its own inputs, even if kernels before it were wrong.

Floats are compared with the coarse tolerance below: this finds the wrong kernel, while the results of the whole program are
compared within the bounds of the ops. Integers and truth values must be equal. Only results of a fusion are compared, not its intermediate
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i64
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.hlo.placement import is_on_host
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, WatchOp, tensor_of
from xla_emitters.dialects.mlir import memref
from xla_emitters.dtypes import Array, dtype_of
from xla_emitters.dynamic.loops.combine import WIDENED, Reducer, reduced_dims
from xla_emitters.dynamic.loops.roots import roots_of
from xla_emitters.explore.check.verdict import Verdict
from xla_emitters.explore.cost.program_cost import RecordedKernels
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.program_kernels import GpuLowering
from xla_emitters.program import Program
from xla_emitters.rewrite.captures import captured_by
from xla_emitters.runtime.numpy_platform import Kernels
from xla_emitters.runtime.ral.buffer_ops import function_of

RELATIVE = {1: 2.0**-2, 2: 2.0**-5, 4: 2.0**-10, 8: 2.0**-30}
"""Bytes of a float -> its allowed relative error. In addition, a 64th of that times the largest number that the fusion reads or writes."""


@dataclass(frozen=True)
class Watched:
    """A fusion, and the values that the ops around it pass on.

    given   the buffers that it reads, or updates
    made    the buffers that it writes completely, and their unknown sizes
    results those that are used outside
    """

    fusion: FusionOp
    given: tuple[SSAValue, ...]
    made: tuple[SSAValue, ...]
    results: tuple[SSAValue, ...]

    @property
    def name(self) -> str:
        return self.fusion.label

    @staticmethod
    def of(fusion: FusionOp) -> Watched:
        written, first_read = dict[SSAValue, None](), dict[SSAValue, None]()
        for op in fusion.body.block.ops:
            if isinstance(op, BufferOp):
                first_read |= {buffer: None for buffer in op.inputs if buffer not in written}
                written |= {buffer: None for buffer in op.outputs}
        updated = [b for b in written if b in first_read or not isinstance(b.owner, memref.AllocOp)]
        captured = [value for value in captured_by(fusion) if isinstance(value.type, MemRefType)]
        given = [buffer for buffer in captured if buffer not in written or buffer in updated]
        made = [buffer for buffer in written if buffer not in updated]
        results = dict.fromkeys(buffer for root in roots_of(fusion) for buffer in root.outputs)
        return Watched(fusion, tuple(given), tuple(made), tuple(results))

    @property
    def sizes(self) -> tuple[SSAValue, ...]:
        """The unknown sizes of the written buffers, in order."""
        return tuple(size for buffer in self.made for size in _allocation(buffer).dynamic_sizes)

    def arrays(self, values: Sequence[Any]) -> dict[SSAValue, Array]:
        """Copies of the input buffers, and memory for the written ones."""
        found = {buffer: np.array(array) for buffer, array in zip(self.given, values, strict=False)}
        sizes = iter(values[len(self.given) :])
        for buffer in self.made:
            tensor = tensor_of(buffer.type)
            shape = [next(sizes) if size < 0 else size for size in tensor.get_shape()]
            found[buffer] = np.empty(shape, dtype_of(tensor.element_type).numpy)
        return found

    def compute(self, arrays: dict[SSAValue, Array]) -> None:
        """Runs the ops by NumPy."""
        for op in self.fusion.body.block.ops:
            if isinstance(op, BufferOp) and not _sum_in_f32(op, arrays):
                function_of(op)(*(arrays[value] for value in op.operands))


def _sum_in_f32(op: BufferOp, arrays: dict[SSAValue, Array]) -> bool:
    """Computes a sum or product of 16-bit floats like a kernel, rounded once; for another op does nothing and returns False."""
    if not reduced_dims(op) or len(op.inputs) != 2:
        return False
    value, start, result = (arrays[buffer] for buffer in op.operands)
    reducer = Reducer.of(op, by_row=True)
    (opcode,) = reducer.opcodes
    if opcode not in WIDENED or reducer.carried == reducer.elements:
        return False
    combine = np.add if opcode == "add" else np.multiply
    whole = combine.reduce(value.astype(np.float32), axis=reduced_dims(op))
    result[...] = combine(start.astype(np.float32), whole).astype(result.dtype)
    return True


def _allocation(buffer: SSAValue) -> memref.AllocOp:
    assert isinstance(buffer.owner, memref.AllocOp)
    return buffer.owner


def watched_lowering(program: Program) -> tuple[GpuLowering, list[Watched]]:
    """The `GpuLowering` of a program with a `lmhlo.watch` before and after each fusion. raises like `Lowerings.lowering`"""
    made = lowerings_of(program)
    assert made.fused is not None, "the caller has asked for the lowering"
    module = made.fused.clone()
    pairs = zip(made.fused.walk(), module.walk(), strict=True)
    watched, fusions = list[Watched](), list[FusionOp]()
    for one, other in pairs:
        if isinstance(one, FusionOp) and isinstance(other, FusionOp) and not is_on_host(one):
            watched.append(Watched.of(one))
            fusions.append(other)
    for number, fusion in enumerate(fusions):
        # All are collected before one is inserted: an op that reads a buffer would make it a result.
        copied = Watched.of(fusion)
        for place, values, at in (
            (2 * number, (*copied.given, *copied.sizes), InsertPoint.before(fusion)),
            (2 * number + 1, copied.results, InsertPoint.after(fusion)),
        ):
            op = WatchOp.create(operands=values, properties={"number": IntegerAttr(place, i64)})
            op.location = fusion.location
            Rewriter.insert_op(op, at)
    return GpuLowering(program.name, module, made.options), watched


@dataclass
class _Judge:
    """The function that the watch ops of one run call."""

    watched: Sequence[Watched]
    kernels: RecordedKernels | None = None
    wanted: dict[int, dict[SSAValue, Array]] = field(default_factory=dict[int, dict[SSAValue, Array]])
    launched: dict[int, dict[str, int]] = field(default_factory=dict[int, dict[str, int]])
    times: dict[int, int] = field(default_factory=dict[int, int])
    wrong: dict[int, str] = field(default_factory=dict[int, str])

    def record(self, kernels: Kernels) -> Kernels:
        self.kernels = RecordedKernels(kernels)
        return self.kernels

    def watch(self, place: int, *values: Any) -> None:
        number, is_after = divmod(place, 2)
        fusion = self.watched[number]
        if not is_after:
            arrays = self.wanted[number] = fusion.arrays(values)
            with np.errstate(all="ignore"):
                fusion.compute(arrays)
            if self.kernels is not None:
                self.kernels.launches.clear()
            return
        self.times[number] = self.times.get(number, 0) + 1
        names = self.launched.setdefault(number, {})
        for launch in self.kernels.launches if self.kernels else ():
            names[launch.name] = names.get(launch.name, 0) + 1
        arrays = self.wanted.pop(number)
        scale = max((largest_magnitude(array) for array in arrays.values()), default=0.0)
        for buffer, found in zip(fusion.results, values, strict=True):
            why = first_difference(found, arrays[buffer].reshape(found.shape), scale)
            if why and number not in self.wrong:
                self.wrong[number] = f"%{buffer.name_hint or 'result'}{why}"

    def verdicts(self, stage: str) -> list[Verdict]:
        found = list[Verdict]()
        for number, fusion in enumerate(self.watched):
            times, names = self.times.get(number, 0), self.launched.get(number, {})
            launches = ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in names.items())
            said = f"; launched: {launches}" if launches else ""
            if (why := self.wrong.get(number)) is not None:
                found.append(Verdict(False, f"{why} at stage {stage}{said}", (f"{fusion.name}: {why}",), fusion.name))
            else:
                found.append(Verdict(True, f"ok{said}" if times else "not reached", name=fusion.name))
        return found


def check_kernels(program: Program, arrays: Sequence[Array], stage: str) -> tuple[list[Verdict], list[Array]]:
    """A verdict for each fusion of the program, in order, and the results of the run.

    arrays  arguments that fit
    stage   "loops", "kernels", "llvm-dialect", "llvm" or "ptx"
    raises  like `Program.run`
    """
    lowering, watched = watched_lowering(program)
    judge = _Judge(watched)
    results = lowering.watched(stage, judge.watch, judge.record).run(arrays)
    return judge.verdicts(stage), results


def first_difference(found: Array, wanted: Array, scale: float) -> str:
    """`[3, 5] is 2.5, not 2.25`: the first element with more than the allowed error, and the number of such elements; "" for none.

    scale  the largest number that the fusion reads or writes
    """
    if not prod(found.shape):
        return ""
    different = differing_much(found, wanted, scale)
    if not different.any():
        return ""
    at = tuple(int(index) for index in np.argwhere(different)[0])
    return f"{list(at)} is {found[at]}, not {wanted[at]} ({int(different.sum())} of {different.size} elements differ)"


def differing_much(found: Array, wanted: Array, scale: float) -> Array:
    """Where the error is more than allowed: an array of truth values. scale: as in `first_difference`"""
    if found.dtype.kind in "biu" or ("float" not in found.dtype.name and found.dtype.kind != "c"):
        return np.asarray(found != wanted)
    parts = 2 if found.dtype.kind == "c" else 1
    relative = RELATIVE[found.dtype.itemsize // parts]
    wide = np.complex128 if parts == 2 else np.float64
    one, other = found.astype(wide), wanted.astype(wide)
    with np.errstate(all="ignore"):
        near = np.abs(one - other) <= relative * np.abs(other) + relative / 64 * scale
        near &= np.isfinite(one) & np.isfinite(other)
    return np.asarray(~(near | (one == other) | (np.isnan(one) & np.isnan(other))))


def largest_magnitude(array: Array) -> float:
    if "float" not in array.dtype.name and array.dtype.kind != "c":
        return 0.0
    magnitudes = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
    return float(np.max(magnitudes, initial=0.0, where=np.isfinite(magnitudes)))
