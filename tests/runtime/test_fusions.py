"""Programs with fusions give the same bits as without: tests/corpus/fusions at three shapes, and variants by sizes."""

from typing import Any

import numpy as np
import pytest
from long_lists import but_long
from runtime.fused_programs import CASES, CORPUS, fused, on_buffers
from runtime.programs_table import programs
from runtime.stablehlo_programs import inputs_of

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.lmhlo import BufferOp, FusionOp
from xla_emitters.dynamic.buffers.disc_fuse_on_buffer import DiscFuseOnBufferPass
from xla_emitters.dynamic.buffers.disc_specialize_fusion_with_speculation import DiscSpecializeFusionWithSpeculationPass
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_passes import PROGRAM_FUSED, PROGRAM_HOST
from xla_emitters.pipelines.program_runs import load, load_any
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.runtime.arrays import same_bits
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.ral.buffer_ops import BufferFunction, function_of
from xla_emitters.runtime.ral.host_program import HostProgram
from xla_emitters.settings import Settings
from xla_emitters.text.stablehlo import parse_stablehlo

OPTIONS = (
    DiscFuseOnBufferPass(),
    DiscFuseOnBufferPass(stitch=False, mix_reductions=True, transposes=True),
    DiscFuseOnBufferPass(horizontal=False, most_buffers=3),
)


@pytest.mark.parametrize(
    "name",
    but_long(
        ("softmax_gradient", "layer_norm_gradient", "bert_layer_bf16"), ("layer_norm_gradient", "bert_layer_bf16")
    ),
)
def test_every_way_to_fuse_gives_the_bits_of_ops_alone(name: str) -> None:
    case = CASES[name][0]
    by_numpy = CompileOptions(record="none", settings=Settings(cpu="numpy"))  # as the stages that it is compared with
    program = compile_program(parse_stablehlo((CORPUS / f"{name}.mlir").read_text(), name), by_numpy)
    made = [load(module) for module in (on_buffers(name), *(fused(name, option) for option in OPTIONS))]
    for sizes in case.sizes:
        inputs = program.compilation.checked(inputs_of(name, sizes, case))
        results = [loaded.run(inputs) for loaded in (program.compilation.loaded, *made)]
        assert all(same_bits(a, b) for found in results for a, b in zip(found, results[0], strict=True))


@pytest.mark.parametrize("name", but_long(["logic", "masked_mean", "scan"], ["logic", "masked_mean"]))
def test_variants_by_sizes_give_the_bits_of_the_program(name: str) -> None:
    """At stage "fused", where choices have regions, and at "host", where they are branches."""
    program = programs()[name]
    module, made = parse_stablehlo(program.text(), name), list[LoadedProgram | HostProgram]()
    for row in (*PROGRAM_FUSED, *PROGRAM_HOST):
        row_pass = row.make(CompileOptions())
        run_pass(row_pass, make_context(), module, verify=True)
        if row_pass.name == "disc-localize-small-cpu-buffer":
            run_pass(DiscSpecializeFusionWithSpeculationPass(), make_context(), module, verify=True)
            assert any(op.name == "scf.if" for op in module.walk())
        if row.stage in ("fused", "host"):
            made.append(load_any(module.clone()))
    compiled = program.compiled()
    for sizes in program.case.sizes:
        inputs = compiled.compilation.checked(program.inputs(sizes))
        results = [loaded.run_on_garbage(inputs) for loaded in (compiled.compilation.loaded, *made)]
        assert all(same_bits(a, b) for found in results for a, b in zip(found, results[0], strict=True))


@pytest.mark.parametrize("name", ["softmax", "softmax_gradient", "log_softmax", "layer_norm", "rms_norm"])
def test_what_a_row_gave_is_read_in_its_row_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reduction of a stitched fusion is changed in one row: in the results, only that row changes."""
    module = fused(name, DiscFuseOnBufferPass())
    (fusion,) = (op for op in module.walk() if isinstance(op, FusionOp))
    assert fusion.kind.data == "kStitch"
    inputs = inputs_of(name, CASES[name][0].sizes[-1], CASES[name][0])
    right = load(module).run(inputs)
    reductions = [op for op in fusion.body.block.ops if isinstance(op, BufferOp) and op.name == "lmhlo.reduce"]
    for changed in reductions:

        def made(op: BufferOp, changed: BufferOp = changed) -> BufferFunction:
            run = function_of(op)

            def run_and_change(*buffers: Any) -> None:
                run(*buffers)
                buffers[-1][1] += 1

            return run_and_change if op is changed else run

        monkeypatch.setattr("xla_emitters.runtime.numpy_platform.function_of", made)
        for found, wanted in zip(load(module).run(inputs), right, strict=True):
            width = wanted.shape[-1]
            differs = (found != wanted).reshape(-1, width).any(axis=1)
            assert np.flatnonzero(differs).tolist() in ([1], []), changed.instruction_name
            assert differs.any() or changed.instruction_name == reductions[0].instruction_name
