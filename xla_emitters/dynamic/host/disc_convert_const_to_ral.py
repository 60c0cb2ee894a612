"""Moves constants to a file beside the program: readers ask the runtime for them by name.

    %o = memref.alloc() : memref<2xi32, "cpu">                  %o = disc_ral.dispatch "ral_const" on "cpu"(%ctx, %stream, %c0)
    lmhlo.constant -> %o {value = dense<[1, 2]>}         ->          config "<MD5 of the data>_i32_2"
    ... memref.dealloc %o                                       ...

The name is the digest of the elements' bytes, the element type, the sizes: `constant_name`. Equal constants share an entry; a constant of
equal elements stores one. The runtime keeps a constant as long as the program, so it is never freed nor given away: a constant
that is returned, or passed to a loop, is copied into the buffer that it had.

    file=PATH   writes the data into PATH, an .npz archive, which the module's attribute `disc.constants` names; otherwise they are in
                that attribute

Source: seed document, "ConvertConstToTaoRAL"; docs/reference/4 1.3, 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, IndexType, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, Use
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects import lmhlo
from xla_emitters.dialects.disc_ral import DispatchOp, SendOutputOp, constant_name, is_marker
from xla_emitters.dialects.hlo.constant import dense, is_dense, undense
from xla_emitters.dialects.lmhlo import BufferOp, space_of, tensor_of
from xla_emitters.dialects.mlir import arith, cf, memref
from xla_emitters.dtypes import Array, DType, dtype_of
from xla_emitters.dynamic.host.contexts import context_of, stream_of
from xla_emitters.errors import file_errors
from xla_emitters.rewrite.kernel_pass import KernelPass

CONSTANTS = "disc.constants"
"""The attribute of a module that holds constants by name."""


@dataclass(frozen=True)
class DiscConvertConstToRalPass(KernelPass):
    name = "disc-convert-const-to-ral"

    file: str = ""

    def apply_to(self, op: ModuleOp) -> None:
        found = dict[str, Array]()
        elements = dict[str, DType]()
        for constant in list(op.walk()):
            if not isinstance(constant, BufferOp) or constant.name != "lmhlo.constant":
                continue
            if isinstance(constant.parent_op(), lmhlo.FusionOp):
                self.skip(constant, "it is part of a fusion")
                continue
            value = constant.properties.get("value")
            if not is_dense(value):
                raise self.refuse(
                    constant,
                    f"constant %{constant.instruction_name} has no data",
                    help="the text says {...}: print the module with full constants",
                )
            array, element = undense(value), dtype_of(tensor_of(constant.outputs[0].type).element_type)
            name = constant_name(array, tensor_of(constant.outputs[0].type).element_type)
            elements[name] = element
            found.setdefault(name, stored(array))
            _convert(constant, name, list(found).index(name))
        if self.file:
            _write(Path(self.file), found)
            op.attributes[CONSTANTS] = StringAttr(self.file)
        elif found:
            held: dict[str, Attribute] = {name: dense(array, elements[name]) for name, array in found.items()}
            op.attributes[CONSTANTS] = DictionaryAttr(held)


def stored(array: Array) -> Array:
    """The stored form of a constant, row major: one element if all have the same bits; the runtime repeats it."""
    flat = np.asarray(array, order="C").reshape(-1)
    data, size = flat.tobytes(), flat.itemsize
    return flat[:1] if flat.size > 1 and data == data[:size] * flat.size else flat.reshape(array.shape)


def as_bytes(array: Array) -> Array:
    """The bytes of all elements, as stored in a file, which has no element types of its own."""
    return np.frombuffer(array.tobytes(), np.uint8)


def constants_of(module: ModuleOp) -> Path | dict[str, bytes]:
    """The constants of a module: their data by name, or the file that has them."""
    held = module.attributes.get(CONSTANTS)
    if isinstance(held, StringAttr):
        return Path(held.data).absolute()
    found = dict(held.data) if isinstance(held, DictionaryAttr) else dict[str, Attribute]()
    return {name: undense(value).tobytes() for name, value in found.items() if is_dense(value)}


def write_constants(module: ModuleOp, path: Path) -> None:
    """Writes the constants of a program on buffers to an .npz file, under the names by which a run reads them. raises UsageError"""
    found = dict[str, Array]()
    for op in module.walk():
        if isinstance(op, BufferOp) and op.name == "lmhlo.constant" and is_dense(value := op.properties.get("value")):
            array = undense(value)
            found.setdefault(constant_name(array, tensor_of(op.outputs[0].type).element_type), stored(array))
    _write(path, found)


def _write(path: Path, constants: Mapping[str, Array]) -> None:
    """raises UsageError where the file cannot be written"""
    with file_errors(f"cannot write {path}", "output"):
        with path.open("wb") as stream:  # a stream: NumPy would add a suffix to a path without one
            np.savez(stream, allow_pickle=False, **{name: as_bytes(array) for name, array in constants.items()})


def _convert(op: BufferOp, name: str, index: int) -> None:
    """Lets readers of the constant's buffer read the runtime's."""
    buffer = op.outputs[0]
    alloc, device = buffer.owner, space_of(buffer.type) or "gpu"
    number = arith.ConstantOp(IntegerAttr(index, IndexType()))
    asked = DispatchOp(
        "ral_const", device, [context_of(op), stream_of(op), number.result], [buffer.type], StringAttr(name)
    )
    asked.res[0].name_hint = buffer.name_hint
    made: list[Operation] = [number, asked]
    others = [use for use in buffer.uses if use.operation is not op]
    is_local = isinstance(alloc, memref.AllocOp | memref.AllocaOp) and not any(map(_gives_away, others))
    if not is_local:
        name = "d2d" if device == "gpu" else "h2h"
        made.append(DispatchOp(name, device, [context_of(op), stream_of(op), asked.res[0], buffer]))
    for one in made:
        one.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))
    Rewriter.erase_op(op)
    if is_local:
        assert isinstance(alloc, Operation)
        for use in others:
            if isinstance(use.operation, memref.DeallocOp) or is_marker(use.operation):
                Rewriter.erase_op(use.operation)
        buffer.replace_all_uses_with(asked.res[0])
        Rewriter.erase_op(alloc)


def _gives_away(use: Use) -> bool:
    """Whether the use returns the buffer, or passes it to another block."""
    return isinstance(use.operation, SendOutputOp | cf.BranchOp | cf.ConditionalBranchOp | cf.SwitchOp)
