"""Anybody's PTX on a CPU: one kernel, given arrays and a launch; `GivenKernel` is what holds for LLVM IR too.

    kernel = PtxKernel.read(text, "scale.ptx")
    after = kernel.run([x, y, np.int32(4096)], LaunchDimensions((32, 1, 1), (128, 1, 1)))        what each pointer's array holds afterwards
    verdict = kernel.check(...)                                                        faults alone: there is no reference

An array is what a pointer points to, an array without dimensions a number. Faults (races, accesses out of bounds or misaligned, reads
of unwritten shared memory, barriers that not all threads reach) are named at their line of the PTX. Source: docs/ptx.md.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Attribute

from xla_emitters.dialects.mlir.data_layout import bits_of
from xla_emitters.dialects.mlir.gpu import MOST_BLOCKS
from xla_emitters.dialects.mlir.tensor_maps import TensorMap
from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError, ExecutionError, Unsupported, UsageError
from xla_emitters.explore.check.module_stages import blocks_to_run
from xla_emitters.explore.check.verdict import Verdict
from xla_emitters.program import LaunchDimensions
from xla_emitters.runtime.arrays import host_array
from xla_emitters.runtime.simt.execute import RULES, Entry
from xla_emitters.runtime.simt.follow import followed
from xla_emitters.runtime.simt.memory import Watcher, address_of
from xla_emitters.runtime.simt.raised_kernels import launch_attributes
from xla_emitters.runtime.simt.sanitizer import Sanitizer
from xla_emitters.support.limits import iteration_limit
from xla_emitters.support.source import Source
from xla_emitters.text.ptx import entry_named, raise_kernel, read_ptx
from xla_emitters.text.ptx.op_builder import TYPES
from xla_emitters.text.ptx.syntax import PtxFunction, PtxModule

STAGE = "ptx"
HELP = "--launch GX[,GY,GZ]xBX[,BY,BZ][+SHARED][/CX[,CY,CZ]], such as 24576x128, 16,8x32,4+4096, or 64x128/2 in clusters of 2 blocks"
Cluster: TypeAlias = tuple[int, int, int]
MAP_HELP = "--tensor-map pM[=pN][:TYPE[DIMS]],box=AxB[,swizzle=32|64|128][,fill=nan][,strides=BYTESx...][,steps=AxB]"
_MAP = re.compile(r"p(\d{1,3})(?:=p(\d{1,3}))?(?::([a-z]+\d+)\[(\d[\d,]{0,60})\])?((?:,[a-z]+=\w+)+)")
_LAUNCH = re.compile(
    r"(\d{1,10}(?:,\d{1,5}){0,2})x(\d{1,4}(?:,\d{1,4}){0,2})(?:\+(\d{1,7}))?(?:/(\d{1,2}(?:,\d{1,2}){0,2}))?"
)
_MOST_THREADS, _MOST_BLOCKS, _MOST_SHARED = 1024, (1 << 31) - 1, 228 << 10
_PLAIN_ALIGNMENT = 256


def launch_of(text: str) -> tuple[LaunchDimensions, int, Cluster | None]:
    """The launch that a text says, its bytes of dynamic shared memory, and the blocks of a cluster. raises UsageError

    >>> launch_of("16,8x32,4+4096/2")
    (LaunchDimensions(grid=(16, 8, 1), block=(32, 4, 1), sizes=()), 4096, (2, 1, 1))
    """
    match = _LAUNCH.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is no launch", stage=STAGE, help=HELP)
    grid, block = ((*map(int, part.split(",")), 1, 1)[:3] for part in (match[1], match[2]))
    launch, shared = LaunchDimensions((grid[0], grid[1], grid[2]), (block[0], block[1], block[2])), int(match[3] or 0)
    if not 1 <= launch.threads <= _MOST_THREADS or not 1 <= launch.blocks <= _MOST_BLOCKS or shared > _MOST_SHARED:
        limits = f"1 to {_MOST_THREADS} threads, 1 to {_MOST_BLOCKS} blocks, at most {_MOST_SHARED} bytes"
        raise UsageError(f"'{text}' is beyond what a GPU launches: {limits}", stage=STAGE)
    if match[4] is None:
        return launch, shared, None
    x, y, z = (*map(int, match[4].split(",")), 1, 1)[:3]
    return launch, shared, (x, y, z)


def tensor_map_of(text: str) -> tuple[int, TensorMap]:
    """The number of the parameter, and the map. raises UsageError

    >>> tensor_map_of("p0=p3:bf16[128,64],box=64x64,swizzle=128")[1].shape
    (128, 64)
    """
    match = _MAP.fullmatch(text.replace(" ", ""))
    found = dict(part.split("=") for part in match[5][1:].split(",")) if match else {}
    words = ("box", "strides", "steps")
    try:
        if match is None or "box" not in found or found.keys() - {*words, "swizzle", "fill"}:
            raise ValueError(text)
        sizes = {word: tuple(map(int, found[word].split("x"))) for word in words if word in found}
        return int(match[1]), TensorMap(
            **sizes,
            swizzle=int(found.get("swizzle", 0)),
            fill=found.get("fill", "zero"),
            argument=int(match[2]) if match[2] else None,
            element=match[3],
            shape=tuple(map(int, match[4].split(","))) if match[4] else None,
        )
    except ValueError:
        raise UsageError(f"'{text}' is no tensor map", stage=STAGE, help=MAP_HELP) from None


class GivenKernel(ABC):
    """One kernel of a text that somebody gave, with what the text says of it.

    name, start, end  of the kernel in its source
    parameters        the name of each, and its type as the text spells it
    bounds            `reqntid`, `maxntid` and `reqnctapercluster`, as far as they are there
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
        self,
        numbers: Sequence[int],
        arguments: Sequence[Mapping[str, Attribute]],
        attributes: Mapping[str, Attribute],
        more: int,
        cluster: Cluster,
    ) -> ModuleOp:
        """The kernel's IR. numbers: the parameters that are no pointers; the other arguments as those of `ptx_text.raise_kernel`"""

    def may_be_map(self, number: int) -> bool:
        """Whether a parameter can be a tensor map, or a pointer to one."""
        return False

    def refused(self, number: int, wanted: str, array: Array) -> DataError:
        """The error that an array is not what a parameter takes."""
        name, got = self.parameters[number][0], f"{array.dtype}{list(array.shape)}"
        return DataError(
            f"argument {number} (p{number}), '{name}' is {wanted}, but the array is {got}", stage="arguments"
        )

    def cluster(self, launch: LaunchDimensions, given: Cluster | None) -> Cluster:
        """Blocks of a cluster, as the text or the launch says. raises DataError where they do not fit"""
        x, y, z = (*self.bounds.get("reqnctapercluster", given or (1,)), 1, 1)[:3]
        if given not in (None, (x, y, z)):
            raise DataError(f"a cluster of {self.name} must have {x}x{y}x{z} blocks", stage=STAGE)
        if prod((x, y, z)) > MOST_BLOCKS or any(of % each for of, each in zip(launch.grid, (x, y, z), strict=True)):
            message = f"clusters of {x}x{y}x{z} blocks do not divide the grid, or are larger than {MOST_BLOCKS}"
            raise DataError(message, stage=STAGE, help=HELP)
        return x, y, z

    def lowered(
        self, arrays: Sequence[Array], launch: LaunchDimensions, more: int = 0, cluster: Cluster = (1, 1, 1)
    ) -> ModuleOp:
        """The kernel's IR for these arguments, and as many pointers more.

        raises   DataError for arrays and launches that do not fit, and what `raise_kernel` raises
        """
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
        alignment: Mapping[str, Attribute] = {"llvm.align": IntegerAttr(_PLAIN_ALIGNMENT, i64)}
        arguments = [alignment] * (len(arrays) + more)
        return self.raised(numbers, arguments, launch_attributes(launch), more, cluster)

    def _with_maps(self, arrays: Sequence[Array], maps: Mapping[int, TensorMap]) -> tuple[list[Array], dict[int, int]]:
        """Copies of the arrays, encoded maps among them, then those that only maps refer to. returns also number -> index of its array

        raises   DataError for a map whose parameter cannot hold one, or that its array does not fit; and what `host_array` raises
        """
        given = [host_array(array, "", f"argument {number} (p{number})") for number, array in enumerate(arrays)]
        copies = [np.array(array, order="C", copy=True) for array in given]
        places = {number: number for number in range(len(copies))}
        for number, tensor_map in maps.items():
            other = number if tensor_map.argument is None else tensor_map.argument
            if not (number < len(arrays) and other < len(arrays)) or not self.may_be_map(number):
                raise DataError(f"p{number} cannot be a tensor map of p{other}", stage=STAGE, help=MAP_HELP)
            if tensor_map.argument is None:
                places[number] = len(copies)
                copies.append(copies[number])
        for number, tensor_map in maps.items():
            place = places[number if tensor_map.argument is None else tensor_map.argument]
            copies[number] = tensor_map.encoded(copies[place], address_of(place, _PLAIN_ALIGNMENT))
            if tensor_map.argument is not None:
                del places[number]
        return copies, places

    def run(
        self,
        arrays: Sequence[Array],
        launch: LaunchDimensions,
        *,
        shared_bytes: int = 0,
        watchers: Sequence[Watcher] = (),
        blocks: Sequence[int] | None = None,
        tensor_maps: Mapping[int, TensorMap] | None = None,
        cluster: Cluster | None = None,
    ) -> dict[int, Array]:
        """Runs the kernel on copies of the arrays. returns for each pointer's number what its array holds afterwards

        tensor_maps  number of a parameter -> the map that it is; then its array is what the map refers to, unless that names another one
        raises   as `lowered`; DataError for tensor maps that do not fit; ExecutionError for a fault, at its place in the text
        """
        maps, cluster = tensor_maps or {}, self.cluster(launch, cluster)
        copies, places = self._with_maps(arrays, maps)
        given = copies[: len(arrays)]
        ir = self.lowered(given, launch, len(copies) - len(arrays), cluster)
        pointers = [number for number in places if number in maps or self.is_pointer(number, given[number])]
        try:
            entry = Entry.of(ir, launch, 0, followed(RULES, watchers))
            entry.execute(
                copies,
                blocks=blocks,
                watchers=watchers,
                max_rounds=iteration_limit(),
                shared_bytes=shared_bytes,
                cluster=cluster,
            )
        except (ExecutionError, Unsupported) as error:
            self._place(error)
            for number, place in places.items():
                if place != number:
                    error.message = error.message.replace(f"argument {place}", f"the array of tensor map p{number}")
            raise
        return {number: copies[places[number]] for number in pointers}

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
        launch: LaunchDimensions,
        *,
        shared_bytes: int = 0,
        blocks: int = 0,
        sanitize: bool = True,
        tensor_maps: Mapping[int, TensorMap] | None = None,
        cluster: Cluster | None = None,
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
                tensor_maps=tensor_maps,
                cluster=cluster,
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

    def __init__(self, module: PtxModule, entry: PtxFunction) -> None:
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

    def may_be_map(self, number: int) -> bool:
        return self.entry.parameters[number].size in (8, 128)

    def raised(
        self,
        numbers: Sequence[int],
        arguments: Sequence[Mapping[str, Attribute]],
        attributes: Mapping[str, Attribute],
        more: int,
        cluster: Cluster,
    ) -> ModuleOp:
        return raise_kernel(
            self.module,
            self.entry,
            numbers=numbers,
            arguments=arguments,
            attributes=attributes,
            more_pointers=more,
            cluster=cluster,
        )
