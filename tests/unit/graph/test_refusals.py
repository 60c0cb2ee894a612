"""Which fusions are refused before any emitter is asked, and not changed by passes on HLO."""

import pytest

from xla_emitters.dialects.hlo.computation import FusionOp
from xla_emitters.errors import Unsupported
from xla_emitters.graph.refusals import refuse_unsupported
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.text.hlo import parse_hlo


def fusion_view(text: str) -> FusionView:
    return view_of(next(op for op in parse_hlo(text, "test.hlo").walk() if isinstance(op, FusionOp)))


@pytest.mark.parametrize(
    ("config", "kind", "named"),
    [
        ('{"fusion_backend_config":{"kind":"__triton_gemm"}}', "kCustom", "__triton_gemm"),
        ('{"fusion_backend_config":{"kind":"__custom_fusion"}}', "kCustom", "__custom_fusion"),
        ('{"fusion_backend_config":{"kind":"__cudnn$fusion"}}', "kLoop", "__cudnn$fusion"),
        ('{"fusion_config":{"kind":"__ynn_fusion"}}', "kCustom", "__ynn_fusion"),
    ],
)
def test_fusions_for_other_compilers_are_refused_by_kind(config: str, kind: str, named: str):
    suffix = f", backend_config={config}" if config else ""
    text = f"""f {{ p = f32[4] parameter(0)
      ROOT a = f32[4] negate(p) }}
      ENTRY main {{ x = f32[4] parameter(0)
      ROOT it = f32[4] fusion(x), kind={kind}, calls=f{suffix} }}"""
    with pytest.raises(Unsupported) as caught:
        refuse_unsupported(fusion_view(text))
    assert caught.value.message == f"fusion %it is of kind '{named}'"
    assert caught.value.place.line == 4


SLICE = '{"kind":"__custom_fusion","custom_fusion_config":{"name":"dynamic_slice_fusion","kernel_index":0}}'


@pytest.mark.parametrize(
    "suffix",
    [
        "",
        ', backend_config={"fusion_backend_config":{"kind":"__loop"}}',
        f', backend_config={{"fusion_backend_config":{SLICE}}}',
    ],
)
def test_what_no_other_compiler_claims_is_taken_whatever_its_kind(suffix: str):
    """As in XLA, measured. A slice that XLA would copy by another engine is a kernel here."""
    refuse_unsupported(
        fusion_view(f"""f {{ p = f32[4] parameter(0)
      ROOT a = f32[4] negate(p) }}
      ENTRY main {{ x = f32[4] parameter(0)
      ROOT it = f32[4] fusion(x), kind=kCustom, calls=f{suffix} }}""")
    )


def test_dimensions_only_known_at_run_time_are_refused_with_their_place():
    text = """f { p = f32[<=8] parameter(0)
      ROOT a = f32[<=8] negate(p) }
      ENTRY main { x = f32[<=8] parameter(0)
      ROOT it = f32[<=8] fusion(x), kind=kLoop, calls=f }"""
    with pytest.raises(Unsupported, match="dimensions only known at run time") as caught:
        refuse_unsupported(fusion_view(text))
    assert caught.value.place is not None


def test_tuples_inside_a_fusion_are_refused():
    text = """f { p = f32[4] parameter(0)
      t = (f32[4], f32[4]) tuple(p, p)
      ROOT a = f32[4] get-tuple-element(t), index=1 }
      ENTRY main { x = f32[4] parameter(0)
      ROOT it = f32[4] fusion(x), kind=kLoop, calls=f }"""
    with pytest.raises(Unsupported) as caught:
        refuse_unsupported(fusion_view(text))
    assert caught.value.help == "only the root of a fusion may be a tuple"
