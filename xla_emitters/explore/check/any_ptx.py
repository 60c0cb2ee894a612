"""Anybody's PTX on a CPU: one kernel, given arrays and a launch; `GivenKernel` is what holds for LLVM IR too.

    kernel = PtxKernel.read(text, "scale.ptx")
    after = kernel.run([x, y, np.int32(4096)], LaunchDimensions((32, 1, 1), (128, 1, 1)))        what each pointer's array holds afterwards
    verdict = kernel.check(...)                                                        faults alone: there is no reference

An array is what a pointer points to, an array without dimensions a number, an array of bytes a structure. Pointers in these, and in
arrays, are given by their place: `inside={(0, 8): x}` puts the address of x at byte 8 of what parameter 0 is, or points to.
Faults (races, accesses out of bounds or misaligned, reads of unwritten shared memory, barriers that not all threads reach) are named at
their line of the PTX. Source: docs/ptx.md.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias, TypedDict, Unpack

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
from xla_emitters.runtime.simt.memory import Memory, Watcher, address_of
from xla_emitters.runtime.simt.raised_kernels import launch_attributes
from xla_emitters.runtime.simt.sanitizer import Sanitizer
from xla_emitters.support.limits import iteration_limit
from xla_emitters.support.source import Source
from xla_emitters.text.ptx import entry_named, raise_kernel, read_ptx
from xla_emitters.text.ptx.op_builder import TYPES
from xla_emitters.text.ptx.syntax import PtxFunction, PtxLiteral, PtxModule

STAGE = "ptx"
HELP = "--launch GX[,GY,GZ]xBX[,BY,BZ][+SHARED][/CX[,CY,CZ]], such as 24576x128, 16,8x32,4+4096, or 64x128/2 in clusters of 2 blocks"
Cluster: TypeAlias = tuple[int, int, int]
MAP_HELP = "--tensor-map pM[=pN][:TYPE[DIMS]],box=AxB[,swizzle=32|64|128][,fill=nan][,strides=BYTESx...][,steps=AxB]"
Place: TypeAlias = int | tuple[int, ...]
"""A parameter, by its number; or where a pointer is in it, or in what it points to: (2, 16) is at byte 16, (2, 16, 8) at byte 8 of that."""
INSIDE = r"p\d{1,3}(?:\+\d{1,9})+"
"""The name of an array whose address is in another one: p2+16, p2+16+8."""
_PLACE = r"\d{1,3}(?:\+\d{1,9})*"
_MAP = re.compile(rf"p({_PLACE})(?:=p({_PLACE}))?(?::([a-z]+\d+(?:x16)?)\[(\d[\d,]{{0,60}})\])?((?:,[a-z]+=\w+)+)")
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


def place_of(text: str) -> Place:
    """The place that a text says.

    >>> place_of("2"), place_of("2+16")
    (2, (2, 16))
    """
    number, *offsets = map(int, text.split("+"))
    return (number, *offsets) if offsets else number


def name_of(place: Place) -> str:
    """The text that says a place, without the `p` or `r` before it."""
    return str(place) if isinstance(place, int) else "+".join(map(str, place))


def tensor_map_of(text: str) -> tuple[Place, TensorMap]:
    """The place of the map, and the map. raises UsageError

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
        return place_of(match[1]), TensorMap(
            **sizes,
            swizzle=int(found.get("swizzle", 0)),
            fill=found.get("fill", "zero"),
            argument=place_of(match[2]) if match[2] else None,
            element=match[3],
            shape=tuple(map(int, match[4].split(","))) if match[4] else None,
        )
    except ValueError:
        raise UsageError(f"'{text}' is no tensor map", stage=STAGE, help=MAP_HELP) from None


class _OtherUnwritten(Watcher):
    """Nobody's bytes are others than they are without it: a result that depends on them changes."""

    def begin(self, memory: Memory) -> None:
        memory.unwritten ^= 0xFF


class Raising(TypedDict):
    """What both `raise_kernel`s take."""

    arguments: Sequence[Mapping[str, Attribute]]
    attributes: Mapping[str, Attribute]
    more_pointers: int


class GivenKernel(ABC):
    """One kernel of a text that somebody gave, with what the text says of it.

    name, start, end  of the kernel in its source
    parameters        the name of each, and its type as the text spells it
    bounds            `reqntid`, `maxntid` and `reqnctapercluster`, as far as they are there
    variables         names of the module's variables that may be given, as a program copies to a symbol
    """

    source: Source
    name: str
    start: int
    end: int
    parameters: Sequence[tuple[str, str]]
    bounds: Mapping[str, tuple[int, ...]]
    remarks: Sequence[str] = ()
    variables: Sequence[str] = ()

    def filled(self, values: Mapping[str, Array]) -> GivenKernel:
        """The kernel where these variables hold these arrays at first. raises DataError for one of another size"""
        return self

    @abstractmethod
    def is_pointer(self, number: int, array: Array) -> bool:
        """Whether a parameter is a pointer that is given this array. raises DataError where the array does not fit"""

    @abstractmethod
    def raised(self, numbers: Sequence[int], cluster: Cluster, **how: Unpack[Raising]) -> ModuleOp:
        """The kernel's IR. numbers: the parameters that are no pointers"""

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
        arguments = [{"llvm.align": IntegerAttr(_PLAIN_ALIGNMENT, i64)}] * (len(arrays) + more)
        how: Raising = {"arguments": arguments, "attributes": launch_attributes(launch), "more_pointers": more}
        return self.raised(numbers, cluster, **how)

    def _placed(
        self, arrays: Sequence[Array], inside: Mapping[tuple[int, ...], Array], maps: Mapping[Place, TensorMap]
    ) -> tuple[list[Array], dict[Place, int]]:
        """Copies of the arrays, with addresses and maps in them, then those that only these refer to; place -> index of its array.

        raises   DataError for an address or a map that does not fit its place, or a map its array; and what `host_array` raises
        """
        given = [host_array(array, "", f"argument {number} (p{number})") for number, array in enumerate(arrays)]
        more = {place: host_array(inside[place], "", f"p{name_of(place)}") for place in sorted(inside, key=len)}
        copies = [np.array(array, order="C", copy=True) for array in (*given, *more.values())]
        places = dict[Place, int](zip((*range(len(given)), *more), range(len(copies)), strict=True))
        holders = dict(places)
        for place, tensor_map in maps.items():
            other = place if tensor_map.argument is None else tensor_map.argument
            is_one = place in places and self.may_be_map(place) if isinstance(place, int) else place[0] in places
            if not is_one or other not in places:
                message = f"p{name_of(place)} cannot be a tensor map of p{name_of(other)}"
                raise DataError(message, stage=STAGE, help=MAP_HELP)
            if isinstance(place, int) and tensor_map.argument is None:
                places[place] = len(copies)
                copies.append(copies[place])
        for place, tensor_map in maps.items():
            at = places[place if tensor_map.argument is None else tensor_map.argument]
            encoded = tensor_map.encoded(copies[at], address_of(at, _PLAIN_ALIGNMENT))
            if not isinstance(place, int):
                _write(copies, holders, place, encoded)
                continue
            copies[place] = encoded
            if tensor_map.argument is not None:
                del places[place]
        for place in more.keys() - maps.keys():
            address = np.array([address_of(places[place], _PLAIN_ALIGNMENT)], "<u8")
            _write(copies, holders, place, address.view(np.uint8))
        return copies, places

    def run(
        self,
        arrays: Sequence[Array],
        launch: LaunchDimensions,
        *,
        shared_bytes: int = 0,
        watchers: Sequence[Watcher] = (),
        blocks: Sequence[int] | None = None,
        inside: Mapping[tuple[int, ...], Array] | None = None,
        tensor_maps: Mapping[Place, TensorMap] | None = None,
        cluster: Cluster | None = None,
    ) -> dict[Place, Array]:
        """Runs the kernel on copies of the arrays. returns for each pointer's place what its array holds afterwards

        inside       place in an array, or in a parameter that is bytes -> the array that the address there is of
        tensor_maps  place -> the map there; then the array of that place is what the map refers to, unless that names another one
        raises   as `lowered`; DataError for tensor maps that do not fit; ExecutionError for a fault, at its place in the text
        """
        maps, cluster = tensor_maps or {}, self.cluster(launch, cluster)
        copies, places = self._placed(arrays, inside or {}, maps)
        given = copies[: len(arrays)]
        ir = self.lowered(given, launch, len(copies) - len(arrays), cluster)
        pointers = [
            place
            for place in places
            if place in maps or not isinstance(place, int) or self.is_pointer(place, given[place])
        ]
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
            for place, index in places.items():
                if place != index:
                    what = f"the array of {'tensor map ' if place in maps else ''}p{name_of(place)}"
                    error.message = re.sub(rf"argument {index}\b", what, error.message)
            raise
        return {place: copies[places[place]] for place in pointers}

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
        blocks: int = 0,
        sanitize: bool = True,
        expected: Callable[[dict[Place, Array]], str] | None = None,
        **how: Any,
    ) -> Verdict:
        """Whether the kernel runs without a fault.

        blocks    how many to run, spread over the grid; 0: all
        expected  (arrays afterwards) -> what is wrong with them, or ""
        how       other arguments of `run`
        """
        chosen, sanitizer = blocks_to_run(launch.blocks, blocks), Sanitizer(keeps_unwritten=True)
        watchers = [sanitizer] if sanitize else []
        try:
            after = self.run(arrays, launch, watchers=watchers, blocks=chosen, **how)
            if sanitizer.unwritten is not None:
                other = self.run(arrays, launch, watchers=[_OtherUnwritten()], blocks=chosen, **how)
                if any(after[place].tobytes() != other[place].tobytes() for place in after):
                    self._place(sanitizer.unwritten)
                    raise sanitizer.unwritten
        except ExecutionError as error:
            return Verdict(False, error.message, tuple(error.render().splitlines()))
        if expected is not None and (wrong := expected(after)):
            return Verdict(False, wrong)
        ran = f"{len(chosen)} of {launch.blocks}" if chosen is not None else str(launch.blocks)
        return Verdict(
            True, f"ok  {ran} blocks of {launch.threads} threads without a fault; there is no reference for numbers"
        )


def _write(copies: Sequence[Array], holders: Mapping[Place, int], place: tuple[int, ...], data: Array) -> None:
    """Puts bytes, an address or a tensor map, at a place. raises DataError where there is no array that holds them"""
    *around, offset = place
    holder: Place = tuple(around) if len(around) > 1 else around[0]
    if holder not in holders or not copies[holders[holder]].ndim:
        raise DataError(f"p{name_of(place)}: p{name_of(holder)} is no array", stage="arguments")
    found = copies[holders[holder]].reshape(-1).view(np.uint8)
    if offset + data.size > found.size or offset % 8:
        message = f"p{name_of(place)}: {data.size} bytes at byte {offset} do not fit the {found.size} bytes there"
        raise DataError(message, stage="arguments", help="a multiple of 8")
    found[offset : offset + data.size] = data


class PtxKernel(GivenKernel):
    """One kernel of a PTX text."""

    def __init__(self, module: PtxModule, entry: PtxFunction) -> None:
        self.module, self.entry, self.source, self.remarks = module, entry, module.source, module.remarks
        self.name, self.start, self.end, self.bounds = entry.name, entry.start, entry.end, entry.bounds
        self.parameters = [(parameter.name, f".{parameter.type}") for parameter in entry.parameters]
        self.variables = [name for name, each in module.variables.items() if each.space in ("const", "global")]

    @staticmethod
    def read(text: str, file: str, entry: str = "") -> PtxKernel:
        """The kernel of that name, or the only one. raises ParseError, DataError"""
        module = read_ptx(text, file, entry)
        return PtxKernel(module, entry_named(module, entry or None))

    def filled(self, values: Mapping[str, Array]) -> PtxKernel:
        held = dict(self.module.variables)
        for name, array in values.items():
            if array.nbytes != held[name].size:
                message = f"the variable {name} has {held[name].size} bytes, but the array is {array.dtype}{list(array.shape)}"
                raise DataError(message, stage="arguments")
            numbers = tuple(map(PtxLiteral, array.tobytes()))
            held[name] = replace(
                held[name], type="b8", count=array.nbytes, align=held[name].alignment, values=numbers, is_extern=False
            )
        return PtxKernel(replace(self.module, variables=held), self.entry)

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

    def raised(self, numbers: Sequence[int], cluster: Cluster, **how: Unpack[Raising]) -> ModuleOp:
        return raise_kernel(self.module, self.entry, numbers=numbers, cluster=cluster, **how)
