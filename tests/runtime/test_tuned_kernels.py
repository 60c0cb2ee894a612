"""Every candidate for a kernel is right: loops of the corpus, odd sizes, several results; reductions, transposes, scatters ..."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from long_lists import but_long, every
from runtime.corpus import CORPUS
from tools_here import SASS, needs

from xla_emitters import device as devices
from xla_emitters.emitters.emitter import Emitter, TunableEmitter
from xla_emitters.emitters.scatter import ScatterEmitter
from xla_emitters.explore.check.check import check
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.pipelines.compiler import compile, plan_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.tuning import kernel_candidates
from xla_emitters.tuning.kernel_candidates import Candidate


def take(number: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Makes `tune="price"` take the candidate of this number, or the last one, unpriced; returns the names of those taken."""
    taken: list[str] = []

    def candidate(planned: PlannedKernel, options: CompileOptions, emitter: TunableEmitter) -> Emitter:
        ways = emitter.candidates(planned.view, options.device)
        chosen = ways[min(number, len(ways) - 1)]
        taken.append(chosen.name)
        return chosen.emitter

    monkeypatch.setattr(kernel_candidates, "cheapest_candidate", candidate)
    return taken


FILES = ("act_mish_f32.c03110cc", "int8_rowquant.72403cb8", "act_gelu_f32.7a8ac9a5")


LONG = [(name, number) for name in (FILES[0], FILES[2]) for number in (1, 3, 5)]


@pytest.mark.parametrize(("name", "number"), but_long([(name, number) for name in FILES for number in (1, 3, 5)], LONG))
def test_fusions_of_the_corpus(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take(number, monkeypatch)
    verdict = check(CORPUS / "loop" / f"{name}.hlo", tune="price", blocks=4, verify=False, sanitize=False)
    assert verdict.ok, verdict
    assert " 0 of 0 " not in verdict.summary
    assert taken != ["4 a thread"]


def fused(result: str, body: str, *parameters: str) -> str:
    given = "\n".join(f"p{n} = {each} parameter({n})" for n, each in enumerate(parameters))
    names = ", ".join(f"p{n}" for n in range(len(parameters)))
    return f"f {{\n{given}\n{body} }}\nENTRY e {{\n{given}\nROOT r = {result} fusion({names}), kind=kLoop, calls=f }}\n"


ODD = {
    "last block not full": fused("f32[5,1012]", "ROOT n = f32[5,1012] negate(p0)", "f32[5,1012]"),
    "layout": fused("bf16[40,152]{0,1}", "ROOT n = bf16[40,152]{0,1} negate(p0)", "bf16[40,152]{0,1}"),
    "two results of two widths": fused(
        "(f32[3,1720], s8[3,1720])",
        "n = f32[3,1720] negate(p0)\nc = s8[3,1720] convert(p0)\nROOT t = (f32[3,1720], s8[3,1720]) tuple(n, c)",
        "f32[3,1720]",
    ),
    "a result of one element": fused(
        "(f32[4,2000], f32[])",
        "n = f32[4,2000] negate(p0)\ns = f32[] add(p1, p1)\nROOT t = (f32[4,2000], f32[]) tuple(n, s)",
        "f32[4,2000]",
        "f32[]",
    ),
    "rows that vectors cross": fused(
        "f32[4000,3]",
        "b = f32[4000,3] broadcast(p1), dimensions={1}\nROOT a = f32[4000,3] add(p0, b)",
        "f32[4000,3]",
        "f32[3]",
    ),
    "packed": fused("s4[9000]", "ROOT c = s4[9000] convert(p0)", "s8[9000]"),
}


@pytest.mark.parametrize("number", but_long(range(1, 6), (2, 4)))
@pytest.mark.parametrize("name", every(2, ODD))
def test_odd_sizes(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole grids, the verifier after every pass, on a GPU so small that these arrays fill it."""
    small = replace(devices.device("h200"), name="small", cores=2)
    monkeypatch.setitem(devices._BY_NAME, "small", small)  # no such GPU is sold
    taken = take(number, monkeypatch)
    verdict = check(ODD[name], tune="price", target="small", stages="xla_gpu,llvm-dialect", verify=False)
    assert verdict.ok, verdict
    assert taken


ADD = "add {\n a = KIND[] parameter(0)\n b = KIND[] parameter(1)\n ROOT s = KIND[] add(a, b) }\n"
IN_PLACE = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"


def summed(kind: str, shape: str, result: str, dims: str) -> str:
    zero = "(0, 0)" if kind == "c64" else "0"
    body = (
        f"z = {kind}[] constant({zero})\nROOT r = {kind}[{result}] reduce(p0, z), dimensions={{{dims}}}, to_apply=add"
    )
    return ADD.replace("KIND", kind) + fused(f"{kind}[{result}]", body, f"{kind}[{shape}]")


def scattered(kind: str) -> str:
    how = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
    body = f"ROOT s = {kind}[40,64] scatter(p0, p1, p2), {how}, to_apply=add"
    return (
        IN_PLACE
        + ADD.replace("KIND", kind)
        + fused(f"{kind}[40,64]", body, f"{kind}[40,64]", "s32[900,1]", f"{kind}[900,1,64]")
    )


OTHER_EMITTERS = {
    "short rows": summed("f32", "700,32", "700", "1"),
    "rows of three vectors": summed("f32", "700,96", "700", "1"),
    "rows of several warps": summed("bf16", "20,2056", "20", "1"),
    "rows of complex numbers": summed("c64", "200,33", "200", "1"),
    "columns": summed("f32", "3,40,260", "3,260", "1"),
    "transpose": fused("f32[130,5,66]", "ROOT t = f32[130,5,66] transpose(p0), dimensions={2,1,0}", "f32[66,5,130]"),
    "packed transpose": fused("bf16[72,136]", "ROOT t = bf16[72,136] transpose(p0), dimensions={1,0}", "bf16[136,72]"),
    "concatenate": fused(
        "s8[40,384]",
        "ROOT c = s8[40,384] concatenate(p0, p1), dimensions={1}",
        "s8[40,256]",
        "s8[40,128]",
    ),
    "concatenate of outer pieces": fused(
        "f32[6,17,64]",
        "v = f32[6,3,64] reverse(p0), dimensions={1}\nROOT c = f32[6,17,64] concatenate(v, p1, p0), dimensions={1}",
        "f32[6,3,64]",
        "f32[6,11,64]",
    ),
    "concatenate of columns": fused(
        "bf16[64,12]{0,1}",
        "ROOT c = bf16[64,12]{0,1} concatenate(p0, p1), dimensions={1}",
        "bf16[64,5]{0,1}",
        "bf16[64,7]{0,1}",
    ),
    "update in place": IN_PLACE
    + fused(
        "bf16[8,100,48]",
        "z = s32[] constant(0)\nROOT u = bf16[8,100,48] dynamic-update-slice(p0, p1, z, p2, z)",
        "bf16[8,100,48]",
        "bf16[8,60,48]",
        "s32[]",
    ),
    "scatter of f32": scattered("f32"),
    "scatter of f16": scattered("f16"),
    "scatter of bf16": scattered("bf16"),
}


@pytest.mark.parametrize("number", but_long([1, 9], [9]))
@pytest.mark.parametrize("name", every(2, OTHER_EMITTERS))
def test_other_emitters(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second candidate and the last, on a GPU so small that these arrays fill it."""
    small = replace(devices.device("h200"), name="small", cores=2)
    monkeypatch.setitem(devices._BY_NAME, "small", small)  # no such GPU is sold
    taken = take(number, monkeypatch)
    verdict = check(OTHER_EMITTERS[name], tune="price", splits=(), target="small", stages="llvm-dialect", verify=False)
    assert verdict.ok, verdict
    assert taken
    assert "as XLA's" not in taken[0]


@needs(*SASS)
@pytest.mark.parametrize(
    "name",
    but_long(["short rows", "rows of complex numbers", "transpose", "scatter of bf16"], ["rows of complex numbers"]),
)
def test_every_candidate_agrees_with_xlas_choice(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are lowered, priced and compared by blocks with XLA's choice, and none is refused."""
    small = replace(devices.device("h200"), name="small", cores=2)
    monkeypatch.setitem(devices._BY_NAME, "small", small)  # no such GPU is sold
    compared, tried = kernel_candidates.disagreement, list[str | None]()

    def others_first(known: Sequence[Candidate]) -> Sequence[Candidate]:
        return [*known[1:], known[0]]

    def compare(*arguments: Any) -> str:
        """Compares, and has the next one tried whatever came out."""
        tried.append(compared(*arguments))
        return "tried"

    monkeypatch.setattr(kernel_candidates, "in_order_of_choice", others_first)
    monkeypatch.setattr(kernel_candidates, "disagreement", compare)
    program = compile(OTHER_EMITTERS[name], tune="price", splits=(), target="small", stage="xla_gpu", cache=False)
    (tuned,) = [each for each in program.traces[0].decisions if each.topic == "tune"]
    assert len(tried) == len(tuned.data["candidates"]) - 1 > 0
    assert tried == [None] * len(tried)


def test_a_scatter_that_does_not_fill_the_gpu_has_candidates() -> None:
    """Fewer threads with more updates each compute less, and words of two need half of the atomic updates."""
    h200 = devices.device("h200")
    for kind, last in (("f32", "4 updates a thread"), ("bf16", "8 updates a thread, words of two")):
        (planned,) = plan_module(read_module(scattered(kind)), CompileOptions()).kernels
        names = [way.name for way in ScatterEmitter().candidates(planned.view, h200)]
        assert (names[0], names[-1]) == ("1 updates a thread", last)
