"""The limits of inlining that take too much text for a FileCheck test."""

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
