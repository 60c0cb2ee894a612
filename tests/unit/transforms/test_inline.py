"""The limits of inlining that take too much text for a FileCheck test."""

from __future__ import annotations

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.xla_gpu import PureCallOp
from xla_emitters.rewrite.notes import take_notes
from xla_emitters.transforms.inline import MAX_NESTING, MAX_OPS, InlinePass


def kernel(ops: int) -> str:
    """A kernel that calls a function of `ops` ops (and a return)."""
    body = ["%v0 = arith.negf %a : f32"]
    body += [f"%v{i} = arith.negf %v{i - 1} : f32" for i in range(1, ops)]
    return "\n".join(
        [
            "func.func @kernel(%x: f32) -> f32 {",
            "%0 = xla_gpu.pure_call @f(%x) : (f32) -> f32",
            "return %0 : f32",
            "}",
            "func.func private @f(%a: f32) -> f32 {",
            *body,
            f"return %v{ops - 1} : f32",
            "}",
        ]
    )


def inlined(ops: int) -> tuple[bool, list[str]]:
    module = parse_ir(kernel(ops), verify=False)
    with take_notes() as notes:
        InlinePass().apply(make_context(), module)
    return not any(isinstance(op, PureCallOp) for op in module.walk()), [remark.text for remark in notes.remarks]


def test_caller_and_callee_together_stay_within_the_limit():
    """The kernel has 2 ops, the function its ops and a return."""
    assert inlined(MAX_OPS - 3) == (True, [])
    done, remarks = inlined(MAX_OPS - 2)
    assert not done
    assert remarks == [f"skipped xla_gpu.pure_call: @f: the result would have more than {MAX_OPS} ops"]


def test_a_function_of_which_one_of_two_calls_was_a_copy_still_moves_into_the_other():
    """no_compute callees are copied while others use them, and moved by the last."""
    module = parse_ir("""
        func.func @kernel(%t: tensor<8xf32>, %i: index, %j: index) -> (f32, f32) {
          %0 = xla_gpu.pure_call @f(%t, %i) : (tensor<8xf32>, index) -> f32
          %1 = xla_gpu.pure_call @f(%t, %j) : (tensor<8xf32>, index) -> f32
          return %0, %1 : f32, f32
        }
        func.func private @f(%t: tensor<8xf32>, %i: index) -> f32 attributes {no_compute} {
          %0 = tensor.extract %t[%i] : tensor<8xf32>
          return %0 : f32
        }""")
    InlinePass().apply(make_context(), module)
    module.verify()
    assert [op.name for op in module.walk()] == [
        "builtin.module",
        "func.func",
        "tensor.extract",
        "tensor.extract",
        "func.return",
    ]


def test_a_public_callee_is_copied_and_kept():
    module = parse_ir("""
        func.func @kernel(%x: f32) -> f32 {
          %0 = xla_gpu.pure_call @f(%x) : (f32) -> f32
          return %0 : f32
        }
        func.func @f(%a: f32) -> f32 {
          %0 = arith.negf %a : f32
          return %0 : f32
        }""")
    with take_notes() as notes:
        InlinePass().apply(make_context(), module)
    # It is not moved, and no sibling shares anything with it.
    assert [remark.text for remark in notes.remarks] == [
        "skipped xla_gpu.pure_call: @f: it is public, so it may have other callers"
    ]


def nested(depth: int) -> str:
    """Ops of `depth` branches in one another, around %a."""
    return (
        "".join(f"%v{i} = scf.if %c -> (f32) {{ " for i in range(depth))
        + "scf.yield %a : f32 "
        + "".join(
            f"}} else {{ scf.yield %a : f32 }} {f'scf.yield %v{i} : f32 ' if i else ''}" for i in reversed(range(depth))
        )
    )


def calls_left(around: int, inside: int) -> int:
    """How many calls are left of one that is in `around` regions, of a function with `inside` regions in one another."""
    call = nested(around).replace(
        "scf.yield %a : f32 }", "%r = xla_gpu.pure_call @f(%a, %c) : (f32, i1) -> f32 scf.yield %r : f32 }", 1
    )
    module = parse_ir(f"""
        func.func @kernel(%a: f32, %c: i1) -> f32 {{
          {call}
          return %v0 : f32
        }}
        func.func private @f(%a: f32, %c: i1) -> f32 {{
          {nested(inside)}
          return %v0 : f32
        }}""")
    InlinePass().apply(make_context(), module)
    module.verify()
    return sum(isinstance(op, PureCallOp) for op in module.walk())


def test_regions_stay_within_the_limit():
    """What walks over IR is recursive: a thousand pads in a row must not become a thousand branches in one another."""
    assert calls_left(4, MAX_NESTING - 4) == 0
    assert calls_left(4, MAX_NESTING - 3) == 1


def test_where_nothing_is_inlined_nothing_is_merged():
    """Equal ops are merged between rounds, so that calls with equal operands can be; a call that stays does not cause another round."""
    text = """
        func.func @kernel(%x: f32) -> (f32, f32, f32) {
          %0 = arith.negf %x : f32
          %1 = arith.negf %x : f32
          %2 = xla_gpu.pure_call @f(%x) {noinline} : (f32) -> f32
          return %0, %1, %2 : f32, f32, f32
        }
        func.func private @f(%a: f32) -> f32 {
          return %a : f32
        }"""
    module = parse_ir(text)
    InlinePass().apply(make_context(), module)
    assert module.is_structurally_equivalent(parse_ir(text))
