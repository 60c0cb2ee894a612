"""Runs a kernel module on the CPU, at any stage between emission and the LLVM dialect.

    execute(module, [x, out])  ->  [out]                     every block of the grid
    written_elements(module, [x, out], blocks=[0, 24575])    only these blocks; which elements of `out` they wrote

The launch is the module's own (see `analysis/kernel_entry`) unless one is given. Arguments are NumPy arrays in the order of the entry's
arguments, parameters then results; the kernel sees their bytes as flat buffers in memory order, whatever the argument's type is at this
stage. The blocks run in chunks, all threads of a chunk in lockstep, op by op in NumPy.

A sub-byte type (s4, u4, f4 ...) takes one byte per element in NumPy and in tensors. Memory behind a pointer packs it, so such an
array is packed for the run where the argument is a pointer, and unpacked afterwards. A buffer that is written is padded to a whole word.
Source: docs/reference/contracts "Passes" and "Numbers"; docs/reference/2 4.1 "ABI".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Attribute

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir.func import FuncOp
from xla_emitters.dialects.mlir.llvm import LLVMPointerType
from xla_emitters.dtypes import DTYPES, Array, Kind
from xla_emitters.errors import DataError, ExecutionError
from xla_emitters.library.packing import packed_bytes, unpacked_elements
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.kernel_entry import INVARIANT, is_entry, launch_of
from xla_emitters.runtime.simt import scalars
from xla_emitters.runtime.simt.code import BlockGraph, Compiler, FunctionCode, Rules, RulesOfFiles
from xla_emitters.runtime.simt.follow import followed
from xla_emitters.runtime.simt.machine import Machine, Tensor, Value
from xla_emitters.runtime.simt.memory import Access, Memory, Watcher
from xla_emitters.runtime.simt.scalars import INDEX, Form, form_of
from xla_emitters.runtime.simt.shared_calls import FunctionOp
from xla_emitters.runtime.simt.tensor_rules import tensor_strides

RULES = RulesOfFiles(
    {
        **{name: (name,) for name in ("affine", "arith", "cf", "complex", "func", "gpu", "index", "math", "memref")},
        **{name: (name,) for name in ("scf", "tensor", "vector")},
        "nvvm": ("nvvm", "nvvm_barrier"),
        **dict.fromkeys(("builtin", "ub"), ("builtin",)),
        "llvm": ("llvm", "arith", "math", "vector", "llvm_atomic", "llvm_intrinsic", "llvm_memory", "nvvm_intrinsic"),
        "xla": ("xla_gpu",),
        "xla_gpu": ("xla_gpu", "xla_gpu_tensor", "atomic"),
    }
)
"""The rules of all ops."""

LANES = 1 << 17
"""Approximate number of threads in a chunk: enough to make NumPy's overhead per op small, few enough to need little memory."""
LANES_THAT_WAIT = 1 << 13, 1 << 19
"""The same where blocks may wait for others. Most wait for those before them, and each round of a wait costs less if fewer blocks run.
Where they wait for later ones, as at a barrier of the grid, the launch begins anew with more threads at once than an H200 or a B200 runs.
"""


def execute(
    module: ModuleOp,
    arguments: Sequence[Array],
    *,
    blocks: Sequence[int] | range | None = None,
    chunk_blocks: int | None = None,
    results: int | None = None,
    launch: LaunchDimensions | None = None,
    watchers: Sequence[Watcher] = (),
    max_rounds: int | None = None,
) -> list[Array]:
    """Runs the module's entry for all blocks of its grid, or for `blocks`, and returns the result arrays, which it writes in place.

    arguments     one C-contiguous array per argument of the entry, of any shape; result arrays last
    blocks        linear block numbers (x fastest)
    chunk_blocks  blocks that run at once; by default as many as have about LANES threads
    results       how many of the last arguments are results; by default as many as the entry returns or, where it returns
                  nothing, the last arguments that are not marked `xla.invariant`
    launch        overrides the module's own
    watchers      called at each access to memory and at each barrier; the buffer of argument n has number n
    max_rounds    limit of the rounds of a loop without a known trip count (scf.while, branches back); by default there is none
    raises        DataError for arrays that do not fit the entry; Unsupported for an op or a type without a rule;
                  ExecutionError for an access out of bounds or misaligned, an undefined division, a stale tensor, a loop
                  that provably never ends (see `rounds`) or has more than `max_rounds` rounds, calls without end
    """
    entry = Entry.of(module, launch, results, followed(RULES, watchers))
    return entry.execute(arguments, blocks=blocks, chunk_blocks=chunk_blocks, watchers=watchers, max_rounds=max_rounds)


def written_elements(
    module: ModuleOp,
    arguments: Sequence[Array],
    *,
    blocks: Sequence[int] | range | None = None,
    results: int | None = None,
    watchers: Sequence[Watcher] = (),
) -> list[Array]:
    """Runs `blocks` as `execute` does and returns which elements they wrote, so that a test of a few blocks compares only those.

    returns  per result array a bool array of its shape: True where an element was written
    """
    entry = Entry.of(module, None, results, followed(RULES, watchers))
    return entry.written_elements(arguments, blocks=blocks, watchers=watchers)


@dataclass
class Writes(Watcher):
    """Marks the bytes of each argument that are written.

    touched   bool, flat, per argument
    """

    touched: Sequence[Array]

    def access(self, memory: Memory, access: Access) -> None:
        if access.is_store and access.buffer.number < len(self.touched):
            offsets = access.offsets
            if access.active is not None:
                offsets, active = np.broadcast_arrays(offsets, access.active)
                offsets = offsets[active]
            for byte in range(access.size):
                self.touched[access.buffer.number][offsets + byte] = True


# ---------------------------------------------------------------------------------------------- arguments


_DEFAULT_ALIGNMENT = 256
"""Bytes, for a buffer whose argument states no alignment: that of allocators."""


@dataclass
class CallersArray:
    """A caller's array and the memory that the kernel sees.

    data          uint8, flat: the array's own bytes, or packed ones
    packed_bits   bits of an element where `data` is packed, else None
    padding       bytes at the end of `data` that are not the array's
    tensor_type   the argument's type if it is a tensor; None for a pointer
    number        the form of an argument that is passed by value
    """

    array: Array
    data: Array
    packed_bits: int | None
    tensor_type: TensorType[Attribute] | None
    alignment: int
    writable: bool
    padding: int = 0
    number: Form | None = None

    def value(self, machine: Machine, number: int) -> Value:
        """The argument of that number, in a buffer of the machine's memory."""
        buffer = machine.memory.add(f"argument {number}", self.data, self.alignment, self.writable)
        if self.number is not None:
            return scalars.from_bits(self.number, self.data.view(self.number.storage).reshape(1, 1))
        if self.tensor_type is None:
            return scalars.constant(INDEX, buffer.base)
        strides = tensor_strides(self.tensor_type)
        return machine.tensor(buffer, form_of(self.tensor_type), self.tensor_type.get_shape(), strides)

    def unpack(self) -> None:
        """Copies the elements of a packed or padded buffer back to the caller's array."""
        if not self.writable:
            return
        flat = self.array.reshape(-1).view(np.uint8)
        if self.packed_bits:
            flat[:] = unpacked_elements(self.data, self.packed_bits)[: flat.size]
        elif self.padding:
            flat[:] = self.data[: flat.size]

    def elements_of(self, of_bytes: Array) -> Array:
        """One flag per element of the array, from one flag per byte of `data`: set if any of its bytes is."""
        of_bytes = of_bytes[: of_bytes.size - self.padding]
        if self.packed_bits:
            flags = np.repeat(of_bytes, 8 // self.packed_bits)[: self.array.size]
        else:
            # As whole words: a reduction over an axis of 2 takes forty times as long.
            word = min(self.array.itemsize, 8)
            words = of_bytes.view(f"u{word}") != 0
            flags = words if word == self.array.itemsize else words[::2] | words[1::2]
        return flags.reshape(self.array.shape)


def memory_of(
    array: Array,
    packed: dict[int, Array],
    padded: dict[int, Array],
    alignment: int = _DEFAULT_ALIGNMENT,
    *,
    writable: bool | None = None,
) -> CallersArray:
    """The memory behind a pointer to an array, which is C-contiguous.

    packed, padded  memory made so far, by the address of its array: arguments that are one array share it
    writable        None: as the array's own flag
    """
    writable = array.flags.writeable if writable is None else writable
    data, bits, padding = array.reshape(-1).view(np.uint8), PACKED_BITS.get(array.dtype), 0
    if bits:
        data = packed.setdefault(array.ctypes.data, packed_bytes(data, bits))
    if writable and (padding := -data.size % WORD_BYTES):
        whole = np.concatenate([data, np.zeros(padding, np.uint8)])
        data = padded.setdefault(array.ctypes.data, whole)
    return CallersArray(array, data, bits, None, alignment, writable, padding)


WORD_BYTES = 4
"""A buffer that is written is padded to a whole word, as an allocator does: atomic updates of narrow elements access whole words."""

PACKED_BITS = {row.numpy: row.bits for row in DTYPES if row.bits < 8 and row.kind is not Kind.PRED}
"""NumPy type -> bits, of the types that memory behind a pointer packs, several elements per byte."""


# ---------------------------------------------------------------------------------------------- the entry


@dataclass(frozen=True)
class Entry:
    """The function that a launch runs.

    attributes   one dictionary per argument
    results      how many of the last arguments are results
    """

    op: FunctionOp
    function: FunctionCode
    types: tuple[Attribute, ...]
    attributes: tuple[dict[str, Attribute], ...]
    launch: LaunchDimensions
    results: int

    @staticmethod
    def of(module: ModuleOp, launch: LaunchDimensions | None, results: int | None, rules: Rules = RULES) -> Entry:
        """The entry of `module`, compiled. raises DataError when there is not exactly one, or it has no launch."""
        compiler = Compiler.of(module, rules)
        functions = [op for op in compiler.symbols.values() if isinstance(op, FunctionOp)]
        entries = [op for op in functions if is_entry(op)]
        if len(entries) != 1:
            names = ", ".join(f"@{op.sym_name.data}" for op in entries) or "none"
            raise DataError(
                f"a kernel module has one entry function, but here it is {names}",
                stage="simt",
                help="an entry is a func.func with xla.entry, or an llvm.func with nvvm.kernel",
            )
        (op,) = entries
        types = tuple(op.function_type.inputs.data)
        attributes = tuple(dict(given.data) for given in op.arg_attrs or ())
        attributes = attributes or tuple(dict[str, Attribute]() for _ in types)
        returned = len(op.function_type.outputs.data) if isinstance(op, FuncOp) else 0
        if results is None:
            results = returned
            while not returned and results < len(types) and INVARIANT not in attributes[-1 - results]:
                results += 1
        function = compiler.function(op.sym_name.data)
        return Entry(op, function, types, attributes, launch or launch_of(module, op), results)

    def execute(
        self,
        arrays: Sequence[Array],
        *,
        blocks: Sequence[int] | range | None = None,
        chunk_blocks: int | None = None,
        watchers: Sequence[Watcher] = (),
        max_rounds: int | None = None,
        shared_bytes: int = 0,
        cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> list[Array]:
        """As the function `execute`. shared_bytes: dynamic shared memory of a block; cluster: blocks of a cluster"""
        bound, sizes = self.bind(arrays), [chunk_blocks]
        if chunk_blocks is None and isinstance(code := self.function.code, BlockGraph) and code.may_wait:
            count = self.launch.blocks if blocks is None else len(blocks)
            sizes = [*dict.fromkeys(min(count, max(1, lanes // self.launch.threads)) for lanes in LANES_THAT_WAIT)]
        before = [(each.data, each.data.copy()) for each in bound if each.writable] if len(sizes) > 1 else []
        with np.errstate(all="ignore"):
            for size in sizes:
                is_last = size == sizes[-1]
                try:
                    for chunk in chunks(self.launch, blocks, size, cluster):
                        of = prod(cluster)
                        memory = Memory(self.launch, chunk, watchers, launch_shared_bytes=shared_bytes, cluster=of)
                        self.run(memory, bound, max_rounds, may_restart=not is_last)
                    break
                except ExecutionError:
                    if is_last:
                        raise
                for data, then in before:
                    data[...] = then
                for watcher in watchers:
                    watcher.restart()
        for argument in bound:
            argument.unpack()
        return [argument.array for argument in bound[len(bound) - self.results :]]

    def written_elements(
        self, arrays: Sequence[Array], *, blocks: Sequence[int] | range | None = None, watchers: Sequence[Watcher] = ()
    ) -> list[Array]:
        """As the function `written_elements`."""
        bound = self.bind(arrays)
        # Arguments that are one array share its mask: a write through one of them marks it for all.
        by_array = {id(argument.array): np.zeros(argument.data.size, np.bool_) for argument in bound}
        touched = [by_array[id(argument.array)] for argument in bound]
        self.execute(arrays, blocks=blocks, watchers=[Writes(touched), *watchers])
        flags = [argument.elements_of(bytes_) for argument, bytes_ in zip(bound, touched, strict=True)]
        return flags[len(flags) - self.results :]

    def bind(self, arrays: Sequence[Array]) -> list[CallersArray]:
        """The memory of the arguments. raises DataError for an array that does not fit its argument."""
        if len(arrays) != len(self.types):
            raise DataError(f"@{self.op.sym_name.data} takes {len(self.types)} arrays, not {len(arrays)}", stage="simt")
        packed: dict[int, Array] = {}
        padded: dict[int, Array] = {}
        return [self._bind(number, array, packed, padded) for number, array in enumerate(arrays)]

    def _bind(self, number: int, array: Array, packed: dict[int, Array], padded: dict[int, Array]) -> CallersArray:
        ir_type, attributes = self.types[number], self.attributes[number]
        writable = INVARIANT not in attributes
        what = f"argument {number} of @{self.op.sym_name.data}"
        if not array.flags.c_contiguous:
            raise DataError(f"{what} is not contiguous", stage="simt", help="np.ascontiguousarray(...)")
        if writable and not array.flags.writeable:
            raise DataError(f"{what} is a result, but cannot be written", stage="simt")
        alignment = _number(attributes.get("llvm.align")) or _DEFAULT_ALIGNMENT
        data = array.reshape(-1).view(np.uint8)
        if isa(ir_type, TensorType[Attribute]):
            form, extents = form_of(ir_type), ir_type.get_shape()
            if array.size != prod(extents) or array.itemsize != form.size:
                raise DataError(
                    f"{what} is {ir_type}, but the array is {array.dtype}{list(array.shape)}",
                    stage="simt",
                    details=(f"{prod(extents)} elements of {form.size} bytes are expected",),
                )
            return CallersArray(array, data, None, ir_type, alignment, writable)
        if not isinstance(ir_type, LLVMPointerType):
            form = form_of(ir_type)
            if array.shape != () or array.itemsize != form.size:
                raise DataError(
                    f"{what} is {ir_type}, but the array is {array.dtype}{list(array.shape)}",
                    stage="simt",
                    help=f"give an array without dimensions of {form.size} bytes",
                )
            return CallersArray(array, data, None, None, alignment, False, number=form)
        found = memory_of(array, packed, padded, alignment, writable=writable)
        wanted = _number(attributes.get("llvm.dereferenceable"))
        if found.data.size < wanted:
            raise DataError(f"{what} is {wanted} bytes, but the array has {found.data.size}", stage="simt")
        return found

    def run(
        self, memory: Memory, arguments: Sequence[CallersArray], max_rounds: int | None, *, may_restart: bool = False
    ) -> None:
        """Runs one chunk. raises ExecutionError when a returned tensor is not the newest value of its result's buffer."""
        machine = Machine(self.launch, memory.blocks, memory, max_rounds, may_restart=may_restart)
        values = [argument.value(machine, number) for number, argument in enumerate(arguments)]
        memory.tell(Watcher.begin)
        returned = self.function.call(machine, values)
        memory.tell(Watcher.end)
        if memory.tensor is not None:
            memory.tensor.check_deallocated(memory)
        for number, value in enumerate(returned):
            buffer = memory.buffers[len(arguments) - len(returned) + number]
            if not isinstance(value, Tensor) or value.buffer is not buffer or value.stamp != buffer.newest:
                raise ExecutionError(
                    f"result {number} of @{self.op.sym_name.data} is not what its inserts into {buffer.name} made: a write is lost",
                    stage="simt",
                )


def _number(attribute: Attribute | None) -> int:
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def chunks(
    launch: LaunchDimensions,
    blocks: Sequence[int] | range | None = None,
    chunk_blocks: int | None = None,
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> Iterator[Array]:
    """Linear block numbers of each chunk, whole clusters by rank. raises DataError for a block that the grid does not have."""
    chosen = np.asarray(range(launch.blocks) if blocks is None else blocks, dtype=np.int64)
    if chosen.size and (chosen.min() < 0 or chosen.max() >= launch.blocks):
        raise DataError(f"the grid has blocks 0 to {launch.blocks - 1}, not all of {blocks}", stage="simt")
    size = chunk_blocks or max(1, LANES // launch.threads)
    if (each := prod(cluster)) > 1:
        clusters, ranks = clusters_of(launch, np.arange(launch.blocks), cluster)
        order = np.lexsort([ranks, clusters])
        chosen = order[np.isin(clusters[order], clusters[chosen])]
        size = max(each, size // each * each)
    for start in range(0, chosen.size, size):
        yield chosen[start : start + size]


def clusters_of(launch: LaunchDimensions, blocks: Array, cluster: tuple[int, int, int]) -> tuple[Array, Array]:
    """For each block the number of its cluster, and its rank there."""
    clusters, ranks = np.zeros_like(blocks), np.zeros_like(blocks)
    rest, scale, step = blocks, 1, 1
    for extent, size in zip(launch.grid, cluster, strict=True):
        at, rest = rest % extent, rest // extent
        clusters, ranks = clusters + at // size * scale, ranks + at % size * step
        scale, step = scale * (extent // size), step * size
    return clusters, ranks
