"""Anybody's PTX on a CPU: one kernel, given arrays and a launch; `GivenKernel` is what holds for LLVM IR too.

    kernel = PtxKernel.read(text, "scale.ptx")
    after = kernel.run([x, y, np.int32(4096)], Launch((32, 1, 1), (128, 1, 1)))        what each pointer's array holds afterwards
    verdict = kernel.check(...)                                                        faults alone: there is no reference

An array is what a pointer points to, an array without dimensions a number. Faults (races, accesses out of bounds or misaligned, reads
of unwritten shared memory, barriers that not all threads reach) are named at their line of the PTX. Source: docs/ptx.md.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Attribute

from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError, ExecutionError, Unsupported, UsageError
from xla_emitters.explore.module_stages import blocks_to_run
from xla_emitters.explore.verdict import Verdict
from xla_emitters.program import Launch
from xla_emitters.ptx_text import entry_named, raise_kernel, read_ptx
from xla_emitters.ptx_text.emitter import TYPES, bits_of
from xla_emitters.ptx_text.syntax import Function, PtxModule
from xla_emitters.runtime.ptx_kernels import launch_attributes
from xla_emitters.runtime.repetition import MOST_ITERATIONS
from xla_emitters.runtime.simt.execute import RULES, Entry
from xla_emitters.runtime.simt.follow import followed
from xla_emitters.runtime.simt.memory import Watcher
from xla_emitters.runtime.simt.sanitizer import Sanitizer
from xla_emitters.texts.source import Source

STAGE = "ptx"
HELP = "--launch GX[,GY,GZ]xBX[,BY,BZ][+SHARED], such as 24576x128 or 16,8x32,4+4096"
_LAUNCH = re.compile(r"(\d{1,10}(?:,\d{1,5}){0,2})x(\d{1,4}(?:,\d{1,4}){0,2})(?:\+(\d{1,7}))?")
_MOST_THREADS, _MOST_BLOCKS, _MOST_SHARED = 1024, (1 << 31) - 1, 228 << 10
_PLAIN_ALIGNMENT = 256


def launch_of(text: str) -> tuple[Launch, int]:
    """The launch that a text says, and its bytes of dynamic shared memory. raises UsageError

    >>> launch_of("16,8x32,4+4096")
    (Launch(grid=(16, 8, 1), block=(32, 4, 1), sizes=()), 4096)
    """
    match = _LAUNCH.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is no launch", stage=STAGE, help=HELP)
    grid, block = ((*map(int, part.split(",")), 1, 1)[:3] for part in (match[1], match[2]))
    launch, shared = Launch((grid[0], grid[1], grid[2]), (block[0], block[1], block[2])), int(match[3] or 0)
    if not 1 <= launch.threads <= _MOST_THREADS or not 1 <= launch.blocks <= _MOST_BLOCKS or shared > _MOST_SHARED:
        limits = f"1 to {_MOST_THREADS} threads, 1 to {_MOST_BLOCKS} blocks, at most {_MOST_SHARED} bytes"
        raise UsageError(f"'{text}' is beyond what a GPU launches: {limits}", stage=STAGE)
    return launch, shared


class GivenKernel(ABC):
    """One kernel of a text that somebody gave, with what the text says of it.

    name, start, end  of the kernel in its source
    parameters        the name of each, and its type as the text spells it
    bounds            `reqntid` and `maxntid`, as far as they are there
    """

    source: Source
    name: str
    start: int
    end: int
    parameters: Sequence[tuple[str, str]]
    bounds: Mapping[str, tuple[int, ...]]
    remarks: Sequence[str] = ()

    @abstractmethod
    def is_pointer(self, number: int, array: Array) -> bool:
        """Whether a parameter is a pointer that is given this array. raises DataError where the array does not fit"""

    @abstractmethod
    def raised(
        self, numbers: Sequence[int], arguments: Sequence[Mapping[str, Attribute]], attributes: Mapping[str, Attribute]
    ) -> ModuleOp:
        """The kernel's IR. numbers: the parameters that are none; the other arguments as those of `raise_kernel`"""

    def refused(self, number: int, wanted: str, array: Array) -> DataError:
        """The error that an array is not what a parameter takes."""
        name, got = self.parameters[number][0], f"{array.dtype}{list(array.shape)}"
        return DataError(
            f"argument {number} (p{number}), '{name}' is {wanted}, but the array is {got}", stage="arguments"
        )

    def lowered(self, arrays: Sequence[Array], launch: Launch) -> ModuleOp:
        """The kernel's IR for these arguments. raises DataError for arrays and launches that do not fit, and what `raise_kernel` raises"""
        if len(arrays) != len(self.parameters):
            names = ", ".join(f"{of} {name}" for name, of in self.parameters)
            raise DataError(
                f"{self.name} takes {len(self.parameters)} arguments ({names}), not {len(arrays)}", stage="arguments"
            )
        numbers = [number for number, array in enumerate(arrays) if not self.is_pointer(number, array)]
        for word, message in (("reqntid", "must have"), ("maxntid", "has at most")):
            if (bound := self.bounds.get(word)) is not None:
                wanted = (*bound, 1, 1)[:3]
                fits = launch.block == wanted if word == "reqntid" else launch.threads <= np.prod(wanted)
                if not fits:
                    block = "x".join(map(str, wanted))
                    raise DataError(f"a block of {self.name} {message} {block} threads ({word})", stage="arguments")
        attributes: list[dict[str, Attribute]] = [{"llvm.align": IntegerAttr(_PLAIN_ALIGNMENT, i64)} for _ in arrays]
        return self.raised(numbers, attributes, launch_attributes(launch))

    def run(
        self,
        arrays: Sequence[Array],
        launch: Launch,
        *,
        shared_bytes: int = 0,
        watchers: Sequence[Watcher] = (),
        blocks: Sequence[int] | None = None,
        most_iterations: int = MOST_ITERATIONS,
    ) -> dict[int, Array]:
        """Runs the kernel on copies of the arrays. returns for each pointer's number what its array holds afterwards

        raises   as `lowered`; ExecutionError for a fault, at its place in the text
        """
        ir = self.lowered(arrays, launch)
        copies = [np.array(array, order="C", copy=True) for array in arrays]
        pointers = [number for number, array in enumerate(arrays) if self.is_pointer(number, array)]
        try:
            entry = Entry.of(ir, launch, 0, followed(RULES, watchers))
            entry.execute(
                copies, blocks=blocks, watchers=watchers, max_rounds=most_iterations, shared_bytes=shared_bytes
            )
        except (ExecutionError, Unsupported) as error:
            self._place(error)
            raise
        return {number: copies[number] for number in pointers}

    def _place(self, error: ExecutionError | Unsupported) -> None:
        """Gives an error the place in the text that its details name, else that of the kernel."""
        source = self.source
        for detail in error.details:
            match = re.search(rf"{re.escape(source.file)}:(\d+):(\d+)", detail)
            if match is not None and error.place is None:
                line, column = int(match[1]), int(match[2])
                shown = source.place_at(line, column, 1)
                word = re.match(r"\S*", shown.text[column - 1 :])
                error.place = source.place_at(line, column, len(word[0]) if word else 1)
        error.place = error.place or source.place(self.start, self.end)

    def check(
        self,
        arrays: Sequence[Array],
        launch: Launch,
        *,
        shared_bytes: int = 0,
        blocks: int = 0,
        sanitize: bool = True,
        most_iterations: int = MOST_ITERATIONS,
        expected: Callable[[dict[int, Array]], str] | None = None,
    ) -> Verdict:
        """Whether the kernel runs without a fault.

        blocks    how many to run, spread over the grid; 0: all
        expected  (arrays afterwards) -> what is wrong with them, or ""
        """
        chosen = blocks_to_run(launch.blocks, blocks)
        watchers = [Sanitizer()] if sanitize else []
        try:
            after = self.run(
                arrays,
                launch,
                shared_bytes=shared_bytes,
                watchers=watchers,
                blocks=chosen,
                most_iterations=most_iterations,
            )
        except ExecutionError as error:
            return Verdict(False, error.message, tuple(error.render().splitlines()))
        if expected is not None and (wrong := expected(after)):
            return Verdict(False, wrong)
        ran = f"{len(chosen)} of {launch.blocks}" if chosen is not None else str(launch.blocks)
        return Verdict(
            True, f"ok  {ran} blocks of {launch.threads} threads without a fault; there is no reference for numbers"
        )


class PtxKernel(GivenKernel):
    """One kernel of a PTX text."""

    def __init__(self, module: PtxModule, entry: Function) -> None:
        self.module, self.entry, self.source, self.remarks = module, entry, module.source, module.remarks
        self.name, self.start, self.end, self.bounds = entry.name, entry.start, entry.end, entry.bounds
        self.parameters = [(parameter.name, f".{parameter.type}") for parameter in entry.parameters]

    @staticmethod
    def read(text: str, file: str, entry: str = "") -> PtxKernel:
        """The kernel of that name, or the only one. raises ParseError, DataError"""
        module = read_ptx(text, file)
        return PtxKernel(module, entry_named(module, entry or None))

    def is_pointer(self, number: int, array: Array) -> bool:
        """A pointer is of 64 bits, and its array has dimensions."""
        parameter = self.entry.parameters[number]
        if parameter.count is not None:
            if array.nbytes != parameter.size:
                raise self.refused(number, f"{parameter.size} bytes", array)
            return False
        size = bits_of(TYPES[parameter.type]) // 8
        if array.ndim and size == 8 and not parameter.type.startswith("f"):
            return True
        if array.ndim or array.itemsize != size or parameter.is_pointer:
            is_pointer = parameter.is_pointer
            wanted = "a pointer: give an array with dimensions" if is_pointer else f"a number of {size} bytes"
            raise self.refused(number, wanted, array)
        return False

    def raised(
        self, numbers: Sequence[int], arguments: Sequence[Mapping[str, Attribute]], attributes: Mapping[str, Attribute]
    ) -> ModuleOp:
        return raise_kernel(self.module, self.entry, numbers=numbers, arguments=arguments, attributes=attributes)
