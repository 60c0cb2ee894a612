"""The cost of a module beside the other choice of its kernels, and the next step that follows."""

from pathlib import Path

import pytest
from in_process import printed
from tools_here import SASS, needs

import xla_emitters as xe
from xla_emitters.device import device
from xla_emitters.errors import UsageError
from xla_emitters.pricing.report import ProgramCost
from xla_emitters.support.units import microseconds
from xla_emitters.tools.main import main

GELU = Path(__file__).parents[4] / "examples" / "gelu.hlo"
COLUMNS = """HloModule columns
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
sums { p = f32[4096,512] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[512] reduce(p, z), dimensions={0}, to_apply=add }
negated { p = f32[512] parameter(0)
  ROOT n = f32[512] negate(p) }
ENTRY e { p = f32[4096,512] parameter(0)
  sum.1 = f32[512] fusion(p), kind=kInput, calls=sums
  ROOT n.1 = f32[512] fusion(sum.1), kind=kLoop, calls=negated }
"""


def test_an_unknown_target_is_refused_before_others_are_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = list[object]()
    monkeypatch.setattr("xla_emitters.explore.cost.cost.compile_module", lambda *given, **_: compiled.append(given))
    with pytest.raises(UsageError, match="unknown target 'gtx1080'"):
        xe.cost(GELU, targets=("h200", "gtx1080"))
    assert not compiled


@pytest.mark.long  # a few dozen candidates, each compiled and assembled; `tests/unit/tuning` has their choice
@needs(*SASS)
def test_the_next_step_is_what_tune_price_makes_of_the_dearest_kernel() -> None:
    """512 columns are 8 blocks of 64; a GPU with 132 multiprocessors has work for more (docs/cost_model.md, skinny reductions)."""
    (cost,) = xe.cost(COLUMNS, compared=True).costs
    assert (cost.dearest.name, cost.dearest.blocks, cost.dearest.multiprocessors) == ("sum_1", 8, 8)
    assert cost.by_price.time < 0.8 * cost.dearest.time
    assert "sum_1: 8 blocks on 132 multiprocessors: --tune price expects" in cost.next_step
    assert f"{cost.by_price.time:.2f} us in 2 kernels" in cost.next_step


@pytest.mark.long  # the candidates are compiled and assembled once more
@needs(*SASS)
def test_tuned_kernels_beside_xlas_choice() -> None:
    (cost,) = xe.cost(COLUMNS).costs
    (tuned,) = xe.cost(COLUMNS, tune="price", compared=True).costs
    assert tuned.xlas.time == cost.time
    assert tuned.time < cost.time


@pytest.fixture(scope="module")
def gelu() -> ProgramCost:
    """Beside what rules would make of it."""
    (cost,) = xe.cost(GELU, compared=True).costs
    return cost


@needs(*SASS)
def test_the_next_step_says_what_a_rule_would_make_of_xlas_kernel(gelu: ProgramCost) -> None:
    """24,576 blocks of one access of 8 bytes are a quarter as many of two of 16."""
    cost = gelu
    assert cost.by_rule.kernels[0].blocks < cost.kernels[0].blocks
    assert cost.next_step.endswith(f", --tune auto {cost.by_rule.time:.1f} us")


@pytest.mark.long  # the candidates are compiled and assembled once more
@needs(*SASS)
def test_kernels_by_rule_are_what_the_next_step_said(gelu: ProgramCost) -> None:
    (ruled,) = xe.cost(GELU, tune="auto", compared=True).costs
    assert (ruled.time, ruled.by_rule) == (gelu.by_rule.time, None)


@needs(*SASS)
def test_xlas_choice_is_a_column() -> None:
    lines = printed("cost", GELU, "--tune", "price").splitlines()
    target = next(line for line in lines if line.startswith("target"))
    assert target.split(maxsplit=2)[1:] == ["h200", "h200, XLA's choice"]
    (time,) = (line for line in lines if line.startswith("expected time"))
    tuned, _, xlas, _ = time.split()[2:]
    assert float(tuned) < float(xlas)


@needs(*SASS)
def test_a_kernel_bound_by_its_launch_is_not_tuned() -> None:
    (cost,) = xe.cost(COLUMNS, fusion="n.1", compared=True).costs
    assert cost.by_price is None
    assert cost.next_step == "next: fewer launches: the dearest kernel, n_1, is bound by its launch"


@needs(*SASS)
def test_instructions_belong_to_hlo_instructions(gelu: ProgramCost) -> None:
    """The counts add up to those of the kernel; the hyperbolic tangent takes more than all other ops of GELU together."""
    (kernel,) = gelu.kernels
    lines = printed("cost", GELU, "--by", "instruction").split("by HLO instruction\n")[1].splitlines()
    counts = {name: int(count) for name, count, _ in (line.rsplit(maxsplit=2) for line in lines[1:])}
    assert sum(counts.values()) == kernel.instructions
    assert next(iter(counts)) == "tanh_0"
    assert counts["tanh_0"] > kernel.instructions / 2
    assert {"square", "cube", "multiply_0", "add_0"} <= set(counts)
    assert main(["cost", str(GELU), "--by", "instruction", "--json"]) == 2


DOT = """HloModule m
fused {
  a = f32[3,5] parameter(0)
  b = f32[5,4] parameter(1)
  ROOT product = f32[3,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
ENTRY e {
  a = f32[3,5] parameter(0)
  b = f32[5,4] parameter(1)
  ROOT fusion = f32[3,4] fusion(a, b), kind=kLoop, calls=fused
}"""


@needs(*SASS)
def test_a_kernel_that_multiplies_says_what_a_call_would_take() -> None:
    """2 * 3 * 5 * 4 operations; a call of so little is bound by its launch."""
    report = xe.cost(DOT)
    ((call,),) = report.costs[0].as_calls.values()
    assert (call.name, call.instruction, call.operations) == ("gemm", "product", 120)
    assert f"computes product itself: as a call of gemm tf32 it would take {microseconds(call.time)}" in str(report)
    assert report.to_json()["targets"][0]["as_calls"]["fusion"][0]["time"] == call.time


COPIED_AND_UPDATED = """
update { p = f32[8192,1024] parameter(0)
  u = f32[16,1024] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  ROOT n = f32[8192,1024] dynamic-update-slice(p, u, i, z) }
ENTRY main { p = f32[8192,1024] parameter(0)
  u = f32[16,1024] parameter(1)
  i = s32[] parameter(2)
  ROOT f = f32[8192,1024] fusion(p, u, i), kind=kLoop, calls=update }
"""


@needs(*SASS)
def test_a_step_that_copies_has_a_price() -> None:
    """An array of 32 MiB is read and written once; nothing says that it is a library's call."""
    (found,) = xe.cost(COPIED_AND_UPDATED).costs
    (copy,) = found.calls
    assert (copy.name, copy.instruction, copy.bytes_needed, copy.launches) == ("copy", "p0 -> r0", 2 * (32 << 20), 1)
    assert copy.time > 1e6 * copy.bytes_needed / device(found.target).bandwidth_bytes_per_s
    assert found.library_calls == ()
    assert found.time == copy.time + found.kernels[0].time
