"""Computations, parameters, tuples and calls: their rules when they are built in IR, and what they evaluate to."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.utils.exceptions import VerifyException

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo.base import HloOp, RuleBroken
from xla_emitters.dialects.hlo.computation import ComputationOp, find_computation
from xla_emitters.errors import VerifyError, XlaEmittersError
from xla_emitters.text.hlo import parse_hlo

FUSED = """
hlo.computation @f {
  %b = hlo.parameter 1 {name = "b"} : tensor<2xf32>
  %a = hlo.parameter 0 {name = "a"} : tensor<4xf32>
  %t = hlo.tuple %a, %b {name = "t"} : (tensor<4xf32>, tensor<2xf32>) -> tuple<tensor<4xf32>, tensor<2xf32>>
  hlo.return %t : tuple<tensor<4xf32>, tensor<2xf32>>
}
"""


def entry(*lines: str) -> str:
    body = "\n".join(lines)
    return f'{FUSED}hlo.computation @main entry {{\n%x = hlo.parameter 0 {{name = "x"}} : tensor<4xf32>\n{body}\n}}'


FITS = '%r = hlo.fusion %x, %y calls @f kind = "kLoop" {name = "r"} : '
Y = '%y = hlo.parameter 1 {name = "y"} : tensor<2xf32>'
RESULT = "tuple<tensor<4xf32>, tensor<2xf32>>"


def computation(module: ModuleOp, name: str) -> ComputationOp:
    (found,) = (op for op in module.ops if isinstance(op, ComputationOp) and op.sym_name.data == name)
    return found


def test_parameters_are_by_number_and_roots_are_the_tuples_operands():
    module = parse_ir(FUSED)
    f = computation(module, "f")
    assert [p.instruction_name.data for p in f.parameters] == ["a", "b"]
    assert [root.name_hint for root in f.roots] == ["a", "b"]
    assert [op.opcode for op in f.instructions] == ["parameter", "parameter", "tuple"]
    assert not f.is_entry


def test_a_fusion_that_fits():
    parse_ir(entry(Y, f"{FITS}(tensor<4xf32>, tensor<2xf32>) -> {RESULT}", f"hlo.return %r : {RESULT}"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ('%y = hlo.parameter 1 {name = "y"} : tensor<3xf32>', f"{FITS}(tensor<4xf32>, tensor<3xf32>) -> {RESULT}"),
            "parameter 1 of computation 'f' does not fit 'fusion'",
        ),
        ((Y, f"{FITS}(tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>"), "the root of computation 'f' does not fit"),
        ((Y, FITS.replace("@f", "@g") + f"(tensor<4xf32>, tensor<2xf32>) -> {RESULT}"), "no computation named 'g'"),
        ((Y, FITS.replace("kLoop", "kLop") + f"(tensor<4xf32>, tensor<2xf32>) -> {RESULT}"), "no fusion kind 'kLop'"),
        (
            (Y.replace("parameter 1", "parameter 0"), '%r = hlo.negate %y {name = "r"} : tensor<2xf32>'),
            "parameter(0) of computation 'main' is defined twice",
        ),
        (('%r = hlo.parameter 3 {name = "y"} : tensor<2xf32>',), "has parameter(3) but no parameter(1)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(lines: tuple[str, ...], message: str):
    type = lines[-1].rpartition("-> ")[2] if "->" in lines[-1] else lines[-1].rpartition(" : ")[2]
    with pytest.raises(XlaEmittersError) as error:
        parse_ir(entry(*lines, f"hlo.return %r : {type}"))
    assert message in str(error.value)


def test_a_computation_is_found_beside_an_instruction_or_another_computation():
    module = parse_ir(FUSED)
    f = computation(module, "f")
    for beside in (f, f.parameters[0]):
        assert find_computation(beside, "f") is f
        with pytest.raises(RuleBroken, match="no computation named 'g'"):
            find_computation(beside, SymbolRefAttr("g"))


def test_a_computation_ends_in_a_return():
    with pytest.raises(VerifyError, match=r"does not end in hlo\.return"):
        parse_ir('hlo.computation @f {\n  %a = hlo.parameter 0 {name = "a"} : tensor<4xf32>\n}')


def test_a_computation_has_no_block_arguments():
    module = parse_ir(FUSED)
    f = computation(module, "f")
    f.body.block.insert_arg(f.root.type, 0)
    with pytest.raises(VerifyException, match="not block arguments"):
        f.verify()


def test_values_of_tuples_and_calls():
    """fusion and call apply the computation to the operands; tuple and get-tuple-element put together and take apart."""
    module = parse_hlo(
        """f { a = f32[2] parameter(0) b = s32[] parameter(1) ROOT t = (f32[2], s32[]) tuple(a, b) }
        e { x = f32[2] parameter(0) y = s32[] parameter(1) u = (f32[2], s32[]) fusion(x, y), kind=kLoop, calls=f
            v = (f32[2], s32[]) call(x, y), to_apply=f ROOT g = s32[] get-tuple-element(v), index=1 }"""
    )
    ops = {op.instruction_name.data: op for op in module.walk() if isinstance(op, HloOp)}
    x, y = np.ones(2, np.float32), np.array(7, np.int32)
    called = list[str]()

    def call(name: str, operands: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        called.append(name)
        return ops["t"].evaluate(operands, call)

    for name in ("u", "v"):
        assert ops[name].evaluate([x, y], call) == (x, y)
    assert called == ["f", "f"]
    assert ops["g"].evaluate([(x, y)], call) is y


def test_a_map_applies_a_computation_of_scalars():
    text = (
        "f {{ a = f32[{0}] parameter(0) ROOT n = f32[{0}] negate(a) }}"
        "e {{ x = f32[4] parameter(0) ROOT m = f32[4] map(x), dimensions={{0}}, to_apply=f }}"
    )
    parse_hlo(text.format("")).verify()
    with pytest.raises(VerifyError, match="parameter 0 of computation 'f' does not fit 'map'"):
        parse_hlo(text.format("4"))


@pytest.mark.parametrize(
    "text", ["{{0-1}: (0, {})}", "{{-}: (0, {})}", "{{}: (0, {1-})}", f"{{{{{'9' * 5000}}}: (0, {{}})}}"]
)
def test_an_aliasing_that_is_none_is_refused_with_its_place(text: str):
    with pytest.raises(XlaEmittersError, match=r"is not an aliasing|9{20}") as raised:
        parse_hlo(f"""HloModule m
f {{ ROOT y = f32[4] parameter(0) }}
ENTRY main {{ x = f32[4] parameter(0)
  ROOT r = f32[4] fusion(x), kind=kLoop, calls=f, output_to_operand_aliasing={text} }}""")
    assert raised.value.place is not None
    assert raised.value.place.line == 4


@pytest.mark.parametrize("text", ["{{}: (-1, {})}", "{{0}: (0, {})}", "{{-1}: (0, {})}", "{{}: (1, {})}"])
def test_an_aliasing_of_arrays_that_are_not_there_is_refused(text: str):
    with pytest.raises(XlaEmittersError, match="cannot share the memory of"):
        parse_hlo(f"""HloModule m
f {{ ROOT y = f32[4] parameter(0) }}
ENTRY main {{ x = f32[4] parameter(0)
  ROOT r = f32[4] fusion(x), kind=kLoop, calls=f, output_to_operand_aliasing={text} }}""")
