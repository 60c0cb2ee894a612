"""Which computations run on the host, which of them are one kernel, and fusions found by name in any computation."""

import pytest
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.backend_configs import is_marker
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import CallOp, ComputationOp
from xla_emitters.errors import UsageError, VerifyError
from xla_emitters.graph.control_computations import (
    called_by,
    control_computations,
    fusion_named,
    is_one_kernel,
    kernel_sources,
    loop_bodies,
)
from xla_emitters.graph.entry import entry_of
from xla_emitters.text.hlo import parse_hlo, print_hlo

BATCH = "lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_batch_dims={0}, rhs_batch_dims={0}"
LOOP = """
half { x = f32[4] parameter(0)
  ROOT r = f32[4] negate(x) }
body { s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  f = f32[4] fusion(x), kind=kLoop, calls=half
  g = f32[4] fusion(f), kind=kLoop, calls=half
  ROOT t = (s32[], f32[4]) tuple(i, g) }
condition { s = (s32[], f32[4]) parameter(0)
  ROOT c = pred[] constant(false) }
more { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b) }
ENTRY main { s = (s32[], f32[4]) parameter(0)
  w = (s32[], f32[4]) while(s), condition=condition, body=body
  x = f32[4] get-tuple-element(w), index=1
  z = f32[] constant(0)
  r = f32[] reduce(x, z), dimensions={0}, to_apply=more
  ROOT f = f32[4] fusion(x), kind=kLoop, calls=half }
"""


def test_loops_run_on_the_host_and_what_kernels_apply_does_not() -> None:
    module = parse_hlo(LOOP)
    assert [c.sym_name.data for c in control_computations(module)] == ["condition", "body", "main"]
    assert [c.sym_name.data for c in loop_bodies(entry_of(module))] == ["body"]


def test_a_body_that_something_else_runs_too_is_not_the_loops_own() -> None:
    module = parse_hlo(LOOP.replace("z = f32[]", "v = (s32[], f32[4]) call(s), to_apply=body\n  z = f32[]"))
    assert loop_bodies(entry_of(module)) == frozenset()


@pytest.mark.parametrize(
    ("instruction", "wanted"),
    [
        ("add(x, x)", True),
        ("copy(x)", True),
        ("dot(x, y), lhs_contracting_dims={}, rhs_contracting_dims={}", True),
        ("fusion(x), kind=kLoop, calls=g", False),
        ("call(x), to_apply=g", False),
        ('custom-call(x), custom_call_target="f"', False),
        ("cholesky(m)", False),
        ("after-all()", False),
    ],
)
def test_entry_is_one_kernel_unless_something_in_it_is_none(instruction: str, wanted: bool) -> None:
    types = {"cholesky": "f32[4,4]", "after-all": "token[]", "dot": "f32[4]"}
    text = f"""
      g {{ x = f32[4] parameter(0)
          ROOT r = f32[4] negate(x) }}
      ENTRY main {{ x = f32[4] parameter(0)
        m = f32[4,4] parameter(1)
        y = f32[] constant(1)
        r = {types.get(instruction.partition("(")[0], "f32[4]")} {instruction}
        ROOT n = f32[4] negate(x) }}"""
    assert is_one_kernel(entry_of(parse_hlo(text))) == wanted


@pytest.mark.parametrize(
    ("parameters", "product", "wanted"),
    [
        # 99 and 100 elements: XLA calls a library from 100 on (xla_gpu_gemm_rewrite_size_threshold); seen in jaxlib 0.10.2.
        ("f32[4,3] f32[3,29]", "f32[4,29] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", True),
        ("f32[4,4] f32[4,21]", "f32[4,21] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", False),
        # It counts one matrix of a batch, and leaves only sums of floats to its emitter.
        ("f32[9,4,3] f32[9,3,5]", f"f32[9,4,5] dot(x, y), {BATCH}", True),
        ("s32[9,4,3] s32[9,3,5]", f"s32[9,4,5] dot(x, y), {BATCH}", False),
        ("f32[1,4,4] f32[4,4,1]", "f32[1,4,4] convolution(x, y), window={size=1}, dim_labels=bf0_io0->bf0", False),
    ],
)
def test_large_products_of_an_entry_are_for_a_library(parameters: str, product: str, wanted: bool) -> None:
    left, right = parameters.split()
    shape = product.split()[0]
    body = f"""x = {left} parameter(0)
        y = {right} parameter(1)
        d = {product}"""
    beside = f"{body}\n ROOT n = {shape} negate(d)"
    assert is_one_kernel(entry_of(parse_hlo(f"ENTRY main {{ {beside} }}"))) == wanted
    alone = body.replace("d = ", "ROOT d = ")
    assert not is_one_kernel(entry_of(parse_hlo(f"ENTRY main {{ {alone} }}")))
    # A text without ENTRY is one fusion, and stays one when it is printed and read again.
    for text in (beside, alone):
        fusion = parse_hlo(f"main {{ {text} }}")
        assert is_one_kernel(entry_of(fusion))
        assert is_one_kernel(entry_of(parse_hlo(print_hlo(fusion))))


@pytest.mark.parametrize(
    "root",
    ["x = f32[4] parameter(0)", "c = f32[4] copy(k)", "t = (f32[4], f32[4]) tuple(k, k)", "b = f32[2,2] bitcast(k)"],
)
def test_an_entry_that_computes_nothing_is_no_kernel(root: str) -> None:
    text = f"{{ k = f32[4] constant({{1, 2, 3, 4}})\n ROOT {root} }}"
    assert not is_one_kernel(entry_of(parse_hlo(f"ENTRY main {text}")))
    assert is_one_kernel(entry_of(parse_hlo(f"main {text}")))


def test_fusions_are_found_anywhere_and_entrys_come_first() -> None:
    module = parse_hlo(LOOP)
    assert fusion_named(module, "f").parent_op() is entry_of(module)
    assert fusion_named(module, "g").parent_op() is control_computations(module)[1]
    assert called_by(module, "g").sym_name.data == "half"
    assert len(kernel_sources(module)) == 3
    with pytest.raises(UsageError, match="no fusion instruction 'h' in ENTRY") as raised:
        fusion_named(module, "h")
    assert raised.value.help == "there are: f, g (in 'body')"
    with pytest.raises(UsageError, match="no fusion instruction 'h' in ENTRY") as raised:
        fusion_named(parse_hlo("ENTRY main { x = f32[4] parameter(0)\n ROOT c = f32[4] negate(x) }"), "h")
    assert raised.value.help == "there are none: without --fusion, ENTRY itself is compiled"


def test_a_computation_that_runs_itself_is_refused() -> None:
    """HLO text cannot say so: a computation is defined before it is called. IR can."""
    text = """
      one { x = f32[4] parameter(0)
            ROOT r = f32[4] negate(x) }
      two { x = f32[4] parameter(0)
            ROOT r = f32[4] call(x), to_apply=one }
      ENTRY main { x = f32[4] parameter(0)
                   ROOT r = f32[4] call(x), to_apply=two }"""
    module = parse_hlo(text)
    one, _, main = (op for op in module.ops if isinstance(op, ComputationOp))
    root, call = one.root.owner, main.root.owner
    assert isinstance(root, HloOp)
    assert isinstance(call, CallOp)
    Rewriter.replace_op(
        root,
        CallOp.create(operands=[one.parameters[0].result], result_types=[root.result.type], properties=call.properties),
    )
    with pytest.raises(VerifyError, match="computation 'two' runs itself") as raised:
        control_computations(module)
    assert raised.value.details == ("two -> one -> two",)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ('f32[4] custom-call(x), custom_call_target="Sharding"', True),
        ('f32[4] custom-call(x), custom_call_target="other"', False),
        ('f32[2] custom-call(x), custom_call_target="SPMDFullToShardShape"', False),
        ('f32[4] custom-call(x, x), custom_call_target="Sharding"', False),
    ],
)
def test_a_marker_gives_its_one_operand(call: str, wanted: bool) -> None:
    root = entry_of(parse_hlo(f"ENTRY main {{ x = f32[4] parameter(0)\n ROOT r = {call} }}")).root.owner
    assert isinstance(root, HloOp)
    assert is_marker(root) == wanted
