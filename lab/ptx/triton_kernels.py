"""The real XLA's Triton kernels, whole grids, against NumPy: products by `mma.sync` with `ldmatrix`, softmax and norms.

Here their fusions are other kernels, so XLA's run alone, on the operands of the fusion in its order. Bounds are those of the ops. Where XLA
takes f32 as TF32, which HLO's default precision lets it, operands are drawn with the digits of TF32: their products are then the same.
"""

import gzip
import json
import re
from collections.abc import Iterator

import numpy as np
from runtime.corpus import CORPUS

from lab.ptx.rows import Row
from lab.ptx.xla_kernels import CODES
from xla_emitters.dtypes import Array, dtype
from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.check.any_ptx import PtxKernel
from xla_emitters.explore.check.module_stages import reference_for
from xla_emitters.graph.entry import entry_of
from xla_emitters.library.packing import BITS_IN_SHARED_BYTES, packed_bytes
from xla_emitters.pipelines.compiler import compile, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import ArraySpec, LaunchDimensions
from xla_emitters.runtime.inputs import draw_inputs
from xla_emitters.runtime.layouts import from_buffer, to_buffer


def rows(every: int, first: int) -> Iterator[Row]:
    with gzip.open(CODES, "rt") as stream:
        codes = {name: code for name, code in json.load(stream).items() if name.startswith("triton/")}
    for name, code in list(codes.items())[first::every]:
        launches = [numbers for _, numbers in code.get("thunks", ()) if numbers]
        if len(launches) == 1:
            yield row(name, code["ptx"], launches[0])


def operands_of(text: str) -> list[int]:
    """The parameters that the fusion at ROOT of ENTRY takes, in its order."""
    entry = text[text.index("\nENTRY") :]
    numbers = {match[1]: int(match[2]) for match in re.finditer(r"([\w.\-]+) = \S+ parameter\((\d+)\)", entry)}
    for match in re.finditer(r"([\w.\-]+) = \S+ bitcast\(([\w.\-]+)\)", entry):
        numbers[match[1]] = numbers[match[2]]
    root = re.search(r"ROOT \S+ = .*? fusion\(([^)]*)\)", entry)
    assert root is not None
    return [numbers[operand.strip()] for operand in root[1].split(",")]


def packed(buffer: Array, spec: ArraySpec) -> Array:
    """The bytes in memory: two elements of 4 bits share one."""
    return (
        packed_bytes(buffer.view(np.uint8), BITS_IN_SHARED_BYTES[spec.dtype])
        if spec.dtype in BITS_IN_SHARED_BYTES
        else buffer
    )


def row(name: str, ptx: str, numbers: list[int]) -> Row:
    gx, gy, gz, bx, by, bz, shared = numbers
    try:
        text = (CORPUS / name).read_text()
        module, program = read_module(text), compile(text, target="h100", stage="hlo", record="none")
        inputs = draw_inputs(entry_of(module), program.parameters, 0)
        if ".tf32." in ptx:
            inputs = [
                (each.view(np.uint32) & 0xFFFFE000).view(np.float32) if each.dtype == np.float32 else each
                for each in inputs
            ]
        order = operands_of(text)
        (result,) = program.results
        buffers = [
            packed(to_buffer(inputs[number], program.parameters[number]), program.parameters[number])
            for number in order
        ]
        buffers.append(np.zeros(result.elements, dtype(result.dtype).numpy))
        kernel, launch = PtxKernel.read(ptx, "triton.ptx"), LaunchDimensions((gx, gy, gz), (bx, by, bz))
        faults = kernel.check(buffers, launch, shared_bytes=shared, blocks=8)
        after = kernel.run(buffers, launch, shared_bytes=shared)[len(buffers) - 1]
        found = from_buffer(after, result)
        reference = reference_for(module, inputs, options=CompileOptions(target="h100", tune="price"))
        verdict = reference.compare([found])
        apart = np.abs(found.astype(np.float64) - reference.values[0].astype(np.float64)).max()
    except (XlaEmittersError, AssertionError, ValueError) as error:
        return Row(f"{name:36} {error}", False, ("refused",))
    said = f"{verdict.summary}, at most {apart:.1e} apart; {'no fault' if faults.ok else faults.summary}"
    counted = ("right" if verdict.ok else "wrong", "with a race" if "a race" in faults.summary else "without a race")
    return Row(f"{name:36} {said}", verdict.ok and (faults.ok or "a race" in faults.summary), counted)
