"""Steps on the CPU: kernels as machine code, products of matrices by BLAS, all other ops in NumPy.

Launches and products that follow each other are called by one call from Python (`code_chain`), and so are the iterations of a loop of them
(`interpreted_loop`). Threads share the blocks of a launch on large arrays (`thread_team`): each part of the grid has words of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from math import prod

import numpy as np

from xla_emitters.dialects.hlo.base import RuleBroken, opcode_of
from xla_emitters.dialects.hlo.constant import ConstantOp, is_dense
from xla_emitters.dialects.hlo.contractions import ConvolutionOp, DotOp
from xla_emitters.dialects.hlo.sized import with_operands
from xla_emitters.dialects.hlo.types import dims_of, element_of
from xla_emitters.dialects.lmhlo import BufferOp
from xla_emitters.dtypes import Array, dtype
from xla_emitters.dynamic.host.steps_of_buffers import LOOPS, CallableOp
from xla_emitters.errors import DataError
from xla_emitters.library.arguments import LETTERS, numpy_type, pointer
from xla_emitters.lowering.cpu.cpu_steps import CHAIN, COPY
from xla_emitters.program.steps import ArrayPlace, Call, Launch, Loop
from xla_emitters.runtime.block_threads import PIECES, parts_of, thread_count
from xla_emitters.runtime.cpu.code_chain import Chain, ChainCode, Changing, LaunchWords, shared
from xla_emitters.runtime.numpy_platform import NumpyPlatform
from xla_emitters.runtime.walk import Frame, Run

COPIES = ("copy", "d2h", "dynamic-reshape", "h2d", "reshape")
"""HLO's ops that copy an array as it is in memory."""


class CpuPlatform(NumpyPlatform):
    """See the file's head.

    ops      as for `NumpyPlatform`
    step_of  returns the address of the code of a kernel, of a loop of `lowering/cpu/blas_calls`, or of what calls both, by name
    """

    def __init__(self, ops: Sequence[CallableOp], step_of: Callable[[str], int]) -> None:
        super().__init__(ops)
        self._step_of = step_of

    def call(self, frame: Frame, step: Call) -> Run:
        op = self.ops[step.op]
        return (
            self._copy(frame, step, op)
            or self._product(frame, step, op)
            or _convolution(frame, step, op)
            or super().call(frame, step)
        )

    def launch(self, frame: Frame, step: Launch) -> Run:
        return super().launch(frame, step) if step.kernel.startswith(LOOPS) else self._launch(frame, step)

    def _launch(self, frame: Frame, step: Launch) -> Run:
        code, blocks = self._step_of(step.kernel), step.grid[0]
        total = _bytes(frame, step)
        if isinstance(blocks, int) and isinstance(step.shared_bytes, int) and total is not None:
            parts = parts_of(blocks, total)
            pieces = min(blocks, parts * PIECES) if parts > 1 else 1
            words = LaunchWords(frame, step, pieces)
            ends = [blocks * piece // pieces for piece in range(pieces + 1)]
            for piece in range(pieces):
                words.set_range(piece, ends[piece], ends[piece + 1], step.shared_bytes)
            calls = Chain(frame, self._chain, [(code, address, 0, 0) for address in words.addresses], words.changing)
            return calls if pieces == 1 else shared(calls, parts, timed=True)
        return self._at_run(frame, step, code)

    @cached_property
    def _chain(self) -> Callable[[int, int], None]:
        return ChainCode(self._step_of(CHAIN))

    def joined(self, frame: Frame, runs: Sequence[Run]) -> Sequence[Run]:
        """Calls of machine code that follow each other are made by one call from Python."""
        found = list[Run]()
        for is_code, group in groupby(runs, lambda run: isinstance(run, Chain)):
            if is_code:
                found.append(Chain.of([run for run in group if isinstance(run, Chain)]))
            else:
                found += group
        return found

    def whole(self, frame: Frame, step: Loop) -> Run | None:
        # Imported here: most programs have no loop.
        from xla_emitters.lowering.cpu.loop_interpreter import INTERPRETER
        from xla_emitters.runtime.cpu.interpreted_loop import interpreted_loop

        return interpreted_loop(frame, step, self._step_of(INTERPRETER), self._written)

    def _written(self, frame: Frame, target: ArrayPlace, elements: Array) -> Chain:
        """A call that writes these elements."""
        held = np.ascontiguousarray(elements)
        frame.kept.append(held)
        return self._copied(frame, target, held.nbytes, pointer(held))

    def _copied(self, frame: Frame, target: ArrayPlace, count: int, source: int | ArrayPlace) -> Chain:
        """A call that copies so many bytes from an address, or from an array."""
        words, changing = (ctypes.c_int64 * 3)(0, 0, count), Changing()
        frame.kept.append(words)
        changing.point(frame, target.slot, words, 0)
        if isinstance(source, ArrayPlace):
            changing.point(frame, source.slot, words, 1)
        else:
            words[1] = source
        return Chain(frame, self._chain, [(self._step_of(COPY), ctypes.addressof(words), 0, 0)], changing)

    def _at_run(self, frame: Frame, step: Launch, code: int) -> Run:
        """A launch whose grid, or whose arrays' sizes, only data decide."""
        words, blocks, shared = LaunchWords(frame, step, 1), frame.value(step.grid[0]), frame.value(step.shared_bytes)
        call = Chain(frame, self._chain, [(code, words.addresses[0], 0, 0)], words.changing)

        def run() -> None:
            if count := blocks():
                words.set_range(0, 0, count, shared())
                call()

        return run

    def _copy(self, frame: Frame, step: Call, op: CallableOp) -> Run | None:
        """An op that copies an array of known size, or writes a constant; None for another op."""
        if not isinstance(op, BufferOp) or (opcode := opcode_of(op.HLO)) not in (*COPIES, "constant"):
            return None
        (target,), shapes = step.writes, frame.bound.shapes
        kind, shape = numpy_type(target.dtype), shapes.get(target.slot)
        if shape is None:
            return None
        if opcode == "constant":
            made = op.as_hlo()
            held = made.array() if isinstance(made, ConstantOp) and is_dense(made.value) else None
            return self._written(frame, target, held) if held is not None and held.dtype == kind else None
        source, *sizes = step.reads
        own = shapes.get(source.slot)
        if source.dtype != target.dtype or own is None:
            return None
        if sizes:
            asked = frame.bound.known.get(sizes[0].slot)
            if asked is None or tuple(asked) != shape:
                return None  # in NumPy the step refuses what does not fit
        is_same = prod(own) == prod(shape) if opcode.endswith("reshape") else own == shape
        return self._copied(frame, target, prod(shape) * kind.itemsize, source) if is_same else None

    def _product(self, frame: Frame, step: Call, op: CallableOp) -> Run | None:
        """A product of matrices of known sizes by BLAS; None for another op, and without BLAS."""
        dot = op.as_hlo() if isinstance(op, BufferOp) and issubclass(op.HLO, DotOp) else None
        places = (*step.reads, *step.writes)
        shapes = [shape for place in places if (shape := frame.bound.shapes.get(place.slot)) is not None]
        if not isinstance(dot, DotOp) or not _is_of_blas(dot) or len(shapes) < 3:
            return None
        from xla_emitters.runtime.cpu.blas import (  # imported here: many programs have no product
            SHARED_WORK,
            gemm_of,
            library,
        )

        if library() is None:
            return None
        pairing, threads = dot.pairing, thread_count()
        gemm = gemm_of(
            shapes[0],
            shapes[1],
            (pairing.lhs_batch, pairing.rhs_batch),
            (pairing.lhs_contracting, pairing.rhs_contracting),
        )
        if gemm is None or prod(shapes[2]) != prod(gemm.batch) * gemm.m * gemm.n:
            return None
        calls, arrays, changing = gemm.calls(places[0].dtype, threads, self._step_of), frame.arrays, Changing()
        frame.kept.append(calls)
        copies = list[tuple[Array, int, tuple[int, ...]]]()
        for operand, place in enumerate(places):
            order = (gemm.left.order, gemm.right.order, None)[operand]
            if order is not None:
                shape = tuple(shapes[operand][dim] for dim in order)
                copies.append((np.empty(shape, dtype(place.dtype).numpy), place.slot, order))
                calls.point(operand, pointer(copies[-1][0]))
            else:
                changing.point(frame, place.slot, calls.words, calls.word(operand))
        parts = min(threads, len(calls)) if gemm.work >= SHARED_WORK else 1
        pieces = min(len(calls), parts * PIECES) if parts > 1 else 1
        ends = [len(calls) * piece // pieces for piece in range(pieces + 1)]
        rows = [(calls.code, calls.address, first, last) for first, last in pairwise(ends)]
        run = Chain(frame, self._chain, rows, changing)
        if parts > 1:
            run = shared(run, parts, timed=True)
        if not copies:
            return run

        def run_on_copies() -> None:
            for scratch, slot, order in copies:
                np.copyto(scratch, arrays[slot].transpose(order))
            run()

        return run_on_copies


def _is_of_blas(dot: DotOp) -> bool:
    """Whether BLAS has its element type, and its algorithm is left open."""
    types = {element_of(value).name for value in (*dot.operands, dot.result)}
    return len(types) == 1 and types <= LETTERS.keys() and dot.algorithm is None


def _convolution(frame: Frame, step: Call, op: CallableOp) -> Run | None:
    """A convolution of known sizes by BLAS; None for another op, and without BLAS."""
    if not isinstance(op, BufferOp) or opcode_of(op.HLO) not in ("convolution", "dynamic-conv"):
        return None
    # Imported here, and below: most programs have none.
    from xla_emitters.dialects.hlo.dynamic_routines import DynamicConvOp
    from xla_emitters.dialects.hlo.library_calls import library_call_of
    from xla_emitters.runtime.cpu.blas import library

    if library() is None:
        return None
    places = (*step.reads[:2], *step.writes)
    shapes = [shape for place in places if (shape := frame.bound.shapes.get(place.slot)) is not None]
    element, made = places[0].dtype, op.as_hlo()
    if len(shapes) < len(places) or element not in LETTERS or {place.dtype for place in places} != {element}:
        return None
    sized = [np.broadcast_to(np.empty((), np.bool_), shape) for shape in shapes[:2]]
    padding = frame.bound.known.get(step.reads[2].slot) if isinstance(made, DynamicConvOp) else None
    try:
        if isinstance(made, ConvolutionOp):
            made = with_operands(made, sized, ConvolutionOp, made.properties)
        elif isinstance(made, DynamicConvOp) and padding is not None:
            made = made.static([*sized, padding])
        else:
            return None
        made.verify_rule()
        if dims_of(made.result) != shapes[2]:
            return None
        from xla_emitters.runtime.cpu.convolutions import convolution_of

        convolve = convolution_of(library_call_of(made)[1], element, *shapes)
    except (DataError, RuleBroken):
        return None  # in NumPy the step refuses its operands when it is reached
    if convolve is None:
        return None
    operands = frame.operands(places)
    return lambda: convolve(*operands())


def _bytes(frame: Frame, step: Launch) -> int | None:
    """Total bytes of a launch's arrays; None where only data decide it."""
    total = 0
    for value in step.arguments:
        if isinstance(value, ArrayPlace):
            shape = frame.bound.shapes.get(value.slot)
            if shape is None:
                return None
            total += prod(shape) * dtype(value.dtype).numpy.itemsize
    return total
