"""The contents of a bundle for a program with unknown sizes: only text and plain data, so that neither xDSL nor LLVM is needed to run it.

    made = bundled_program(program)
    made.ptx, made.constants            PTX with indices of 32 and of 64 bits; the elements of constants by name
    made.rows                           the manifest's entry: steps, ops, constants, kernels, why no GPU can run it

Ops outside of kernels are rows (`runtime/plain_ops`): copies, assertions, and functions of `library`. A program with another op
there (a scatter, a reduction of windows) can be bundled too; running the bundle refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xla_emitters.dialects.hlo.base import opcode_of
from xla_emitters.dialects.hlo.constant import is_dense, undense
from xla_emitters.dialects.hlo.dynamic_shape_ops import PrintOp, ShapeAssertionOp
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp, tensor_of
from xla_emitters.dtypes import Array, dtype, dtype_of
from xla_emitters.errors import UsageError
from xla_emitters.host.disc_convert_const_to_ral import constant_name, stored
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.pipelines.program_gpu import library_function
from xla_emitters.program import Program
from xla_emitters.program.steps import Call, Place, steps_within
from xla_emitters.program.steps_json import value_json
from xla_emitters.runtime.bundle import BundledProgram
from xla_emitters.runtime.cupy_steps import CONSTANT, COPIES
from xla_emitters.runtime.packing import BITS_IN_SHARED_BYTES


def bundled_program(program: Program) -> BundledProgram:
    """The program for a bundle. raises Unsupported for what no kernel computes, ToolError from LLVM"""
    lowering = lowerings_of(program).lowering
    if lowering.options.constants:
        raise UsageError(
            f"the constants of {program.name} are in {lowering.options.constants}",
            stage="bundle",
            help="compile without `constants`",
        )
    made, constants = lowering.steps, dict[str, bytes]()

    def kept(array: Array, element: str) -> str:
        """The name of a constant, whose elements go into the bundle."""
        name = constant_name(array, dtype(element).ir_type)
        constants[name] = stored(array).tobytes()
        return name

    rows, refused = list[dict[str, Any]](), ""
    for op in made.ops:
        row = _row(op, kept)
        if row is None:
            what = op.fusion_name.data if isinstance(op, FusionOp) and op.fusion_name else op.name
            where = f" '{op.instruction_name}'" if isinstance(op, BufferOp) else ""
            refused = (
                refused or f"no kernel and no library function computes{where} ({what}), and a bundle has no other"
            )
        rows.append(row or {})
    calls = [step for step in steps_within(made.steps) if isinstance(step, Call)]
    places: list[Place] = [*made.parameters, *made.results, *(p for call in calls for p in (*call.reads, *call.writes))]
    if any(place.dtype in BITS_IN_SHARED_BYTES for place in places):
        refused = refused or "a bundle holds no programs with elements below eight bits"
    return BundledProgram(
        (lowering.ptx, lowering.wide_ptx),
        constants,
        {
            "target": lowering.options.device.architecture,
            "kernels": {
                kernel.name: {**kernel.to_json(), "narrow_up_to": lowering.safe_up_to(kernel)}
                for kernel in lowering.kernels
            },
            "held": [{"place": value_json(place), "name": kept(array, place.dtype)} for place, array in made.constants],
            "ops": rows,
            "steps": made.to_json(),
            "refused": refused,
        },
    )


def _row(op: BufferOp | FusionOp, kept: Callable[[Array, str], str]) -> dict[str, Any] | None:
    """An op as plain data; None for an op that a bundle cannot run. `kept`: stores a constant, and returns its name."""
    if isinstance(op, FusionOp):
        return None
    opcode = opcode_of(op.HLO)
    types = [dtype_of(tensor_of(operand.type).element_type).name for operand in op.operands]
    row = {"name": op.instruction_name, "opcode": opcode, "types": types, "outputs": len(op.outputs)}
    if opcode in COPIES:
        return row
    if opcode == CONSTANT:
        value = op.properties.get("value")
        return row | {"constant": kept(undense(value), types[0])} if is_dense(value) else None
    if (called := library_function(op)) is not None:
        return row | {"library": list(called)}
    match op.as_hlo():
        case PrintOp(label=label):
            return row | {"label": label.data}
        case ShapeAssertionOp(message=message):
            return row | {"message": message.data}
        case _:
            return None
