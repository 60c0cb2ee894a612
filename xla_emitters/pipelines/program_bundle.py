"""The contents of a bundle for a program with unknown sizes: only text and plain data, so that neither xDSL nor LLVM is needed to run it.

    made = bundled_program(program)
    made.host, made.ptx                 the host program in Python; PTX with indices of 32 and of 64 bits
    made.rows                           the manifest's entry: kernels, ops on sizes, locations of arguments, why no GPU can run it

Ops of the host program are rows (`runtime/ral/plain_ops`): integer arithmetic, and functions of `library`. A program with another op
outside of its kernels (a scatter, a reduction of windows) can be bundled too; running the bundle refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from xla_emitters.dialects.hlo.base import HloOp, integers, opcode_of
from xla_emitters.dialects.hlo.dynamic_shape_ops import ShapeAssertionOp
from xla_emitters.dialects.hlo.elementwise import CompareOp
from xla_emitters.dialects.hlo.shape_ops import ConcatenateOp, SliceOp
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, tensor_of
from xla_emitters.dtypes import dtype_of
from xla_emitters.errors import UsageError
from xla_emitters.host.disc_convert_const_to_ral import constants_of
from xla_emitters.host.python_program import python_program
from xla_emitters.pipelines.program_gpu import device_arguments, library_function
from xla_emitters.pipelines.programs import DynamicProgram
from xla_emitters.runtime.bundle import BundledProgram
from xla_emitters.runtime.packing import BITS_IN_SHARED_BYTES
from xla_emitters.runtime.ral.plain_ops import FUNCTIONS, NUMBERS


def bundled_program(program: DynamicProgram) -> BundledProgram:
    """The program for a bundle. raises Unsupported for what no kernel computes, ToolError from LLVM"""
    lowering = program.lowering
    host = lowering.at("host")
    made = python_program(host)
    ops, refused = dict[str, dict[str, Any]](), ""
    for name, op in made.functions.items():
        row = _row(op)
        if row is None:
            what = op.fusion_name.data if isinstance(op, FusionOp) and op.fusion_name else op.name
            where = f" '{op.instruction_name}'" if isinstance(op, BufferOp) else ""
            refused = (
                refused or f"no kernel and no library function computes{where} ({what}), and a bundle has no other"
            )
        else:
            ops[name] = row
    if any(kind in BITS_IN_SHARED_BYTES for kind in (*made.dtypes.values(), *program.sizes.guards.types)):
        refused = refused or "a bundle holds no programs with elements below eight bits"
    constants = constants_of(host)
    if isinstance(constants, Path):
        raise UsageError(
            f"the constants of {program.name} are in {constants}", stage="bundle", help="compile without `constants`"
        )
    return BundledProgram(
        made.source,
        (lowering.ptx, lowering.wide_ptx),
        constants,
        {
            "target": lowering.options.device.architecture,
            "kernels": {
                kernel.name: {**kernel.to_json(), "narrow_up_to": lowering.safe_up_to(kernel)}
                for kernel in lowering.kernels
            },
            "ops": ops,
            "dtypes": dict(made.dtypes),
            "on_device": list(device_arguments(lowering)),
            "donated": sorted(made.donated),
            "results": [element for element, _ in program.results],
            "refused": refused,
        },
    )


def _row(op: BufferOp | FusionOp) -> dict[str, Any] | None:
    """An op as plain data; None for an op that a bundle cannot run."""
    if isinstance(op, FusionOp):
        return None
    made, opcode = op.as_hlo(), opcode_of(op.HLO)
    types = [dtype_of(tensor_of(operand.type).element_type).name for operand in op.operands]
    row = {"name": op.instruction_name, "opcode": opcode, "types": types, "outputs": len(op.outputs)}
    if (called := library_function(op)) is not None:
        return row | {"library": list(called)}
    if opcode not in FUNCTIONS or not NUMBERS.issuperset(types):
        return None
    details = DETAILS.get(type(made))
    return row | (details(made) if details else {})


def _slice(op: HloOp) -> dict[str, Any]:
    assert isinstance(op, SliceOp)
    starts, limits, strides = zip(*map(integers, op.ranges), strict=True) if op.ranges.data else ((), (), ())
    return {"starts": starts, "limits": limits, "strides": strides}


def _compare(op: HloOp) -> dict[str, Any]:
    assert isinstance(op, CompareOp)
    return {"direction": op.direction.data}


def _concatenate(op: HloOp) -> dict[str, Any]:
    assert isinstance(op, ConcatenateOp)
    return {"dimension": op.dimension}


def _assertion(op: HloOp) -> dict[str, Any]:
    assert isinstance(op, ShapeAssertionOp)
    return {"message": op.message.data}


DETAILS: Mapping[type[HloOp], Callable[[HloOp], dict[str, Any]]] = {
    CompareOp: _compare,
    ConcatenateOp: _concatenate,
    ShapeAssertionOp: _assertion,
    SliceOp: _slice,
}
"""Op -> the fields of its row besides its types."""
