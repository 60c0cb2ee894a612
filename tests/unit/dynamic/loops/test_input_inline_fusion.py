"""The ops that the two passes emit, counted: none twice, and none that is not needed."""

from collections import Counter

import pytest

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dynamic.loops import kernel_code
from xla_emitters.dynamic.loops.disc_input_inline_fusion import DiscInputInlineFusionPass
from xla_emitters.dynamic.loops.disc_lhlo_legalize_to_loop import DiscLhloLegalizeToLoopPass
from xla_emitters.errors import InternalError, Unsupported
from xla_emitters.rewrite.kernel_pass import run_pass

V = 'memref<?xf32, "gpu">'


PROPERTIES = {"reverse": "dimensions = array<i64: 0>, "}


def fused(ops: list[tuple[str, str, str]]) -> str:
    """A function with one fusion. ops  (opcode, operands, result): the last result is returned, the others are intermediates"""
    buffers = "\n".join(f"%{result} = memref.alloc(%n) : {V}" for _, _, result in ops)
    lines = list[str]()
    for opcode, operands, result in ops:
        types = ", ".join([V] * (1 + operands.count(",")))
        given = f'{PROPERTIES.get(opcode, "")}name = "{result}"'
        lines.append(f"lmhlo.{opcode} {operands} -> %{result} {{{given}}} : ({types}) -> {V}")
    body = "\n".join(lines)
    return f"""
    func.func @main(%x: {V}, %y: {V}, %n: index) -> {V} {{
      {buffers}
      "lmhlo.fusion"() <{{kind = "kLoop", fusion_name = "f"}}> ({{
        {body}
        lmhlo.terminator
      }}) : () -> ()
      return %{ops[-1][2]} : {V}
    }}"""


def counts(text: str) -> Counter[str]:
    """How often each op is in the loop after both passes."""
    module = parse_ir(text)
    for made in (DiscLhloLegalizeToLoopPass(), DiscInputInlineFusionPass()):
        run_pass(made, make_context(), module, verify=True)
    (loop,) = [op for op in module.walk() if op.name == "scf.parallel"]
    return Counter(op.name for op in loop.walk())


@pytest.mark.tiny
@pytest.mark.parametrize("length", [1, 10])
def test_a_chain_of_ops_is_as_many_ops_a_load_and_a_store(length: int) -> None:
    names = ["x", *(f"t{i}" for i in range(length))]
    found = counts(fused([("negate", f"%{names[i]}", names[i + 1]) for i in range(length)]))
    assert found == Counter(
        {"scf.parallel": 1, "memref.load": 1, "arith.negf": length, "memref.store": 1, "scf.reduce": 1}
    )


def test_a_value_that_is_used_twice_is_computed_once() -> None:
    """A ladder: each rung needs the one below twice, so naive code would have 2^20 additions."""
    names = ["x", *(f"t{i}" for i in range(20))]
    found = counts(fused([("add", f"%{names[i]}, %{names[i]}", names[i + 1]) for i in range(20)]))
    assert (found["arith.addf"], found["memref.load"]) == (20, 1)


def test_a_root_is_not_computed_again_where_another_one_needs_it() -> None:
    """Not even by way of an op between them; a branch would show it, for it is never taken for another one."""
    text = fused([("abs", "%k", "t"), ("negate", "%t", "z")])
    text = text.replace("%t = memref", f"%k = memref.alloc(%n) : {V}\n%t = memref", 1)
    join = f'lmhlo.concatenate %x, %y -> %k {{dimensions = array<i64: 0>, name = "k"}} : ({V}, {V}) -> {V}'
    text = text.replace("lmhlo.abs", f"{join}\nlmhlo.abs", 1).replace(f"-> {V} {{", f"-> ({V}, {V}) {{", 1)
    text = text.replace(f"return %z : {V}", f"return %k, %z : {V}, {V}")
    found = counts(text)
    assert (found["scf.if"], found["memref.store"]) == (1, 2)


def test_each_element_is_loaded_once() -> None:
    ops = [("add", "%x, %y", "a"), ("multiply", "%a, %y", "b"), ("subtract", "%b, %x", "c"), ("divide", "%c, %y", "d")]
    assert counts(fused(ops))["memref.load"] == 2


def test_a_chain_may_be_longer_than_the_stack() -> None:
    names = ["x", *(f"t{i}" for i in range(400))]
    found = counts(fused([("negate", f"%{names[i]}", names[i + 1]) for i in range(400)]))
    assert found["arith.negf"] == 400


def test_moves_at_one_place_share_their_element() -> None:
    """Two reversals of the same buffer at one place are one load."""
    ops = [("reverse", "%x", "a"), ("reverse", "%x", "b"), ("add", "%a, %b", "c"), ("reverse", "%c", "d")]
    found = counts(fused(ops))
    assert (found["memref.load"], found["arith.addf"]) == (1, 1)


def test_code_that_doubles_with_every_op_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An element of a concatenation is in one of two branches; both need the op before, and neither sees the other."""
    monkeypatch.setattr(kernel_code, "MOST_OPS", 500)
    lines, before = list[str](), "x"
    for i in range(17):
        lines.append(
            f'lmhlo.concatenate %{before}, %{before} -> %t{i} {{dimensions = array<i64: 0>, name = "t{i}"}} : ({V}, {V}) -> {V}'
        )
        before = f"t{i}"
    text = fused([("negate", f"%{before}", "z")]).replace("lmhlo.negate", "\n".join([*lines, "lmhlo.negate"]), 1)
    buffers = "\n".join(f"%t{i} = memref.alloc(%n) : {V}" for i in range(17))
    with pytest.raises(Unsupported, match="longer than 500 ops"):
        counts(text.replace('"lmhlo.fusion"', f'{buffers}\n"lmhlo.fusion"'))


def test_a_result_that_no_loop_writes_is_an_error_of_ours() -> None:
    module = parse_ir(
        fused([("abs", "%x", "a"), ("negate", "%a", "b")]).replace(
            "lmhlo.terminator",
            "%c1 = arith.constant 1 : index\n scf.parallel (%i) = (%c1) to (%n) step (%c1) { scf.reduce }\n lmhlo.terminator",
        )
    )
    with pytest.raises(InternalError, match=r"no loop of 'f' writes the result of lmhlo\.negate"):
        run_pass(DiscInputInlineFusionPass(), make_context(), module)
