"""The contents of a bundle for a program with unknown sizes: only text and plain data, so that neither xDSL nor LLVM is needed to run it.

    made = bundled_program(program)
    made.ptx, made.constants            PTX with indices of 32 and of 64 bits; the elements of constants by name
    made.rows                           the manifest's entry: the program's JSON, names of constants, why no GPU can run it

What its calls compute that a library does not are copies, constants, prints and assertions (`runtime/plain_ops`). A program with another op
there (a scatter, a reduction of windows) can be bundled too; running the bundle refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from xla_emitters.dialects.disc_ral import constant_name
from xla_emitters.dialects.hlo.constant import is_dense, undense
from xla_emitters.dtypes import Array, dtype
from xla_emitters.dynamic.host.disc_convert_const_to_ral import stored
from xla_emitters.errors import UsageError
from xla_emitters.library.packing import BITS_IN_SHARED_BYTES
from xla_emitters.pipelines.lowerings import lowerings_of
from xla_emitters.program import Program
from xla_emitters.program.as_json import value_json
from xla_emitters.program.callees import OF_THE_HOST
from xla_emitters.runtime.bundle.bundle import BundledProgram
from xla_emitters.runtime.plain_ops import CONSTANT, PLAIN


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

    elements = {
        str(number): kept(undense(value), program.calls[number].results[0].dtype)
        for number, op in enumerate(made.ops)
        if program.calls[number].name == f"{OF_THE_HOST}{CONSTANT}" and is_dense(value := op.properties.get("value"))
    }
    before = len(program.parameters) + len(program.results)
    return BundledProgram(
        (lowering.ptx, lowering.wide_ptx),
        constants,
        {
            **{name: value for name, value in program.to_json().items() if name not in ("name", "code", "hlo")},
            "target": lowering.options.device.architecture,
            "narrow_up_to": {kernel.name: lowering.safe_up_to(kernel) for kernel in lowering.kernels},
            "places": [
                value_json(replace(place, slot=before + number))
                for number, (place, _) in zip(program.constants, made.constants, strict=True)
            ],
            "held": [kept(array, place.dtype) for place, array in made.constants],
            "elements": elements,
            "donated": sorted(made.donated),
            "refused": next(_refused(program, elements.keys()), ""),
        },
    )


def _refused(program: Program, known: Iterable[str]) -> Iterator[str]:
    """Why a bundle cannot run the program; `known` numbers of calls whose result is stored."""
    for number, call in enumerate(program.calls):
        name = call.name.removeprefix(OF_THE_HOST)
        if call.name != name and (name not in PLAIN or (name == CONSTANT and str(number) not in known)):
            where = f" '{call.instruction}'" if call.instruction else ""
            yield f"no kernel and no library function computes{where} (lmhlo.{name}), and a bundle has no other"
    arrays = (*program.parameters, *program.results, *program.temporaries)
    if any(spec.dtype in BITS_IN_SHARED_BYTES for spec in arrays):
        yield "a bundle holds no programs with elements below eight bits"
