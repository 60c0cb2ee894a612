"""The grammar of modules, computations and instructions; locations; and the errors for wrong input."""

import random
import time
from pathlib import Path

import pytest
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, NameLoc, StringAttr

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp, FusionOp, GetTupleElementOp
from xla_emitters.dialects.hlo.types import Alias, AliasAttr
from xla_emitters.errors import VerifyError, XlaEmittersError
from xla_emitters.text.hlo import parse_hlo

ROOT = Path(__file__).parents[4]
EXAMPLES = ROOT / "examples"
CORPUS = ROOT / "tests" / "corpus" / "loop"


def computations(module: ModuleOp) -> dict[str, ComputationOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, ComputationOp)}


def instruction(module: ModuleOp, name: str) -> HloOp:
    (found,) = (op for op in module.walk() if isinstance(op, HloOp) and op.instruction_name.data == name)
    return found


def in_computation(*lines: str) -> str:
    return "\n".join(("e {", *(f"  {line}" for line in lines), "}"))


# -------------------------------------------------------------------------------------------------------------------- what is read


@pytest.mark.tiny
def test_the_seeds_gelu():
    """`HloModule m:`, a computation without ENTRY, `%` here and there, operands with shapes, no layouts."""
    module = parse_hlo((EXAMPLES / "gelu.hlo").read_text(), "gelu.hlo")
    module.verify()
    found = computations(module)
    assert list(found) == ["gelu", "main"]
    assert [c.is_entry for c in found.values()] == [False, True]
    assert [op.opcode for op in found["gelu"].instructions].count("multiply") == 6
    fusion = instruction(module, "fusion")
    assert isinstance(fusion, FusionOp)
    assert (fusion.kind.data, fusion.calls.root_reference.data) == ("kLoop", "gelu")
    assert str(fusion.result.type) == "tensor<6x512x4096xbf16>"


def test_every_instruction_knows_where_it_was_written():
    text = (EXAMPLES / "gelu.hlo").read_text()
    module = parse_hlo(text, "gelu.hlo")
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, _ = line.strip().removeprefix("ROOT ").partition(" = ")
        if not equals:
            continue
        column = line.index(name) + 1
        (op,) = (
            op
            for op in module.walk()
            if isinstance(op.location, NameLoc)
            and isinstance(where := op.location.location, FileLineColLoc)
            and where.line.data == number
        )
        where = op.location.location
        assert isinstance(op, HloOp)
        assert op.location.desc.data == op.instruction_name.data == name.removeprefix("%")
        assert (where.filename.data, where.column.data) == ("gelu.hlo", column)


def test_a_computation_alone_is_a_module():
    module = parse_hlo("fusion {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] negate(p)\n}")
    (computation,) = computations(module).values()
    assert computation.is_entry
    assert module.sym_name == StringAttr("module_fusion")


def test_without_entry_and_root_the_last_ones_are_meant():
    module = parse_hlo("a { p = f32[] parameter(0) q = f32[] negate(p) }\nb { p = f32[] parameter(0) }")
    found = computations(module)
    assert [c.is_entry for c in found.values()] == [False, True]
    assert found["a"].root.owner is instruction(module, "q")


def test_the_root_need_not_be_last():
    module = parse_hlo(in_computation("ROOT r = f32[] parameter(1)", "q = f32[] parameter(0)"))
    (computation,) = computations(module).values()
    assert computation.root.owner is instruction(module, "r")
    assert [p.instruction_name.data for p in computation.parameters] == ["q", "r"]


def test_signatures_comments_and_attributes_are_read():
    module = parse_hlo(
        """// a comment
        HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[4]{0}, f32[])->(f32[4]{0}, f32[])}
        ENTRY %f (p.1: f32[4], /*index=1*/q: f32[]) -> (f32[4], f32[]) { /* here
          too */
          p.1 = f32[4]{0} parameter(0), sharding={devices=[2]<=[2]}, frontend_attributes={k="v"}
          q = f32[] parameter(1), metadata={op_name="a/b" source_file="x.py" source_line=3}
          ROOT t = (f32[4], f32[]) tuple(p.1, q), backend_config={"a":{"b":[1,"}"]}}, control-predecessors={q}
        }, execution_thread="host"
        """
    )
    assert module.attributes == {
        "hlo.is_scheduled": StringAttr("true"),
        "hlo.entry_computation_layout": StringAttr("{(f32[4]{0}, f32[])->(f32[4]{0}, f32[])}"),
    }
    assert instruction(module, "p.1").attributes == {
        "sharding": StringAttr("{devices=[2]<=[2]}"),
        "frontend_attributes": StringAttr('{k="v"}'),
    }
    assert instruction(module, "t").attributes == {
        "backend_config": StringAttr('{"a":{"b":[1,"}"]}}'),
        "control_predecessors": StringAttr("{%q}"),
    }
    assert computations(module)["f"].attributes == {"execution_thread": StringAttr('"host"')}


def test_aliases_of_the_module_are_numbers():
    module = parse_hlo(
        "HloModule m, input_output_alias={ {}: (0, {}, must-alias), {1,0}: (1, {0}) }\n"
        + in_computation("ROOT p = (f32[], (s32[])) parameter(0)", "q = (s32[]) parameter(1)")
    )
    aliases = list(module.attributes["hlo.input_output_alias"])
    assert aliases == [AliasAttr(Alias((), 0, (), "must-alias")), AliasAttr(Alias((1, 0), 1, (0,), "may-alias"))]


def test_stack_tables_are_kept():
    tables = (
        'FileNames\n1 "x.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n1 {file_name_id=1 line=3}\n\nStackFrames\n1 {}'
    )
    module = parse_hlo(f"HloModule m\n\n{tables}\n\n" + in_computation("p = f32[] parameter(0)"))
    assert module.attributes["hlo.stack_tables"] == StringAttr(tables)


@pytest.mark.parametrize(
    ("operands", "added"),
    [
        ("p, f32[2] negate(f32[2] abs(p))", ["abs.anon", "negate.anon"]),
        # Attributes do not follow an operand, also where the wrapped op of an async one would take them.
        ("f32[2] abs-done(((f32[2]), f32[2]) abs-start(p)), p", ["abs-start.anon", "abs-done.anon"]),
    ],
)
def test_an_operand_may_be_an_instruction_of_its_own(operands: str, added: list[str]):
    module = parse_hlo(in_computation("p = f32[2] parameter(0)", f"ROOT r = f32[2] add({operands})"))
    computation = computations(module)["e"]
    assert [op.instruction_name.data for op in computation.instructions] == ["p", *added, "r"]


def test_a_hash_takes_an_element_of_a_tuple():
    module = parse_hlo(in_computation("t = (f32[2], (s32[], f32[3])) parameter(0)", "ROOT r = f32[3] negate(t#1#1)"))
    operand = instruction(module, "r").operands[0].owner
    assert isinstance(operand, GetTupleElementOp)
    assert str(operand.result.type) == "tensor<3xf32>"


def test_a_computation_may_stand_where_it_is_called():
    module = parse_hlo(
        in_computation(
            "p = f32[2] parameter(0)",
            "ROOT f = f32[2] fusion(p), kind=kLoop, calls={ x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }",
        )
    )
    assert list(computations(module)) == ["f.computation", "e"]
    module.verify()


def test_a_broadcast_of_a_scalar_needs_no_dimensions():
    module = parse_hlo(in_computation("c = f32[] constant(1)", "ROOT b = f32[4] broadcast(c)"))
    module.verify()


@pytest.mark.parametrize("dims", ["?", "<=8", "4,<=8,?"])
def test_dynamic_dimensions_are_read(dims: str):
    parse_hlo(in_computation(f"p = f32[{dims}] parameter(0)", f"ROOT n = f32[{dims}] negate(p)")).verify()


def test_names_may_be_words_of_the_grammar():
    parse_hlo(
        "%ENTRY { parameter = f32[] parameter(0) %inf = f32[] negate(parameter) ROOT %ROOT = f32[] negate(%inf) }"
    ).verify()


# ------------------------------------------------------------------------------------------------------------- what is refused

P = "p = f32[4] parameter(0)"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((P, "ROOT = f32[4] negate(p)"), "'ROOT' cannot be an instruction"),
        ((P, "f32 = f32[4] negate(p)"), "'f32' cannot be an instruction"),
        ((P, "r = f32[4] foo(p)"), "no HLO op 'foo' (instruction %r of computation 'e')"),
        ((P, "r = f32[4] negat(p)"), "did you mean 'negate'?"),
        ((P, "r = f32[4] exp(p)"), "did you mean 'exponential'?"),
        ((P, "r = f32[4] neg(p)"), "did you mean 'negate'?"),
        ((P, "r = b16[4] negate(p)"), "no element type 'b16'; did you mean 'bf16'?"),
        ((P, "r = f32[4] negate(q)"), "no instruction 'q' before this one in computation 'e'"),
        (("%param = f32[4] parameter(0)", "r = f32[4] negate(%parm)"), "did you mean 'param'?"),
        ((P, "p = f32[4] negate(p)"), "instruction 'p' is defined twice in computation 'e'"),
        ((P, "r = f32[4] negate(p), dimension={0}"), "'negate' has no attribute 'dimension'"),
        ((P, "r = f32[4,2] broadcast(p), dimnsions={0}"), "did you mean 'dimensions'?"),
        ((P, "r = f32[4,2] broadcast(p)"), "'broadcast' needs the attribute 'dimensions='"),
        ((P, "r = f32[4] negate(p), metadata={}, metadata={}"), "attribute 'metadata' is given twice"),
        ((P, "r = f32[4] negate(p, p)"), "wrong number of operands for 'negate'"),
        ((P, "r = f32[4] negate(f32[5] p)"), "operand 'p' is written with a shape that is not its own"),
        ((P, "r = f32[4] parameter(0)"), "parameter(0) of computation 'e' is defined twice"),
        (("p = f32[4] parameter(1)",), "computation 'e' has parameter(1) but no parameter(0)"),
        ((P, "r = f32[4] parameter(2)"), "has parameter(2) but no parameter(1)"),
        ((P, "ROOT a = f32[4] negate(p)", "ROOT b = f32[4] negate(p)"), "computation 'e' has a second ROOT"),
        ((P, "r = convert(p)"), "the shape of 'convert' cannot be left out"),
        ((P, "r = f32[4] fusion(p), kind=kLoop, calls=g"), "no computation 'g' before this one"),
        ((P, "r = f32[3] negate(p)"), "'negate' cannot have this result shape"),
        ((P, "r = f32[4] get-tuple-element(p), index=0"), "of a value that is not a tuple"),
        (("t = (f32[4]) parameter(0)", "r = f32[4] get-tuple-element(t), index=1"), "a tuple of 1 has no element 1"),
        (("t = (f32[4]) parameter(0)", "r = f32[4] negate(t#3)"), "'t' has no element 3"),
        ((P, "r = (f32[4], f32[5]) tuple(p, p)"), "'tuple' cannot have this result shape"),
        (("",), "computation 'e' has no instructions"),
    ],
)
def test_a_wrong_instruction_says_why(lines: tuple[str, ...], message: str):
    with pytest.raises(XlaEmittersError) as error:
        parse_hlo(in_computation(*lines), "t.hlo")
    assert error.value.place is not None
    assert message in str(error.value)


def test_operands_that_differ_are_shown_where_they_stand():
    text = in_computation(
        "%x = f32[64,4096] parameter(0)", "%bias = f32[4096] parameter(1)", "ROOT %s = f32[64,4096] add(%x, %bias)"
    )
    with pytest.raises(VerifyError) as error:
        parse_hlo(text, "bias.hlo")
    assert str(error.value).splitlines() == [
        "bias.hlo:4:34: error: [hlo.verify] elementwise operands differ in shape",
        "      ROOT %s = f32[64,4096] add(%x, %bias)",
        "                                     ^~~~~",
        "    operand 1 is f32[4096]; 'add' needs f32[64,4096]",
        "bias.hlo:3:3: note: 'bias' is f32[4096]",
        "      %bias = f32[4096] parameter(1)",
        "      ^~~~",
        "    help: f32[64,4096] broadcast(%bias), dimensions={1}",
    ]


SEVERAL = """
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] ad(a, b) }
f {
  p = f32[8,4] parameter(0)
  bias = f32[4] parameter(1)
  s = f32[8,4] add(p, bias)
  t = f32[8] negate(s)
  u = f32[9] negate(t)
  z = f32[] constant(0)
  r = f32[8] reduce(p, z), dimensions={1}, to_apply=sum
  v = f32[8] add(r, missing)
  w = f32[8] add(missing, missing)
  x = f32[8] reduce(p, z), dimensions={1}, to_apply=nosum
  y = f32[8] reduce(p, z), dimensions={1}, to_apply=nosum
  k = f32[2] constant({1, 2, 3})
  l = f32[8,4] negate(p), dimensions={1}
  m = add(l, p)
  n = f32[8,4] negate(p), metadata={op_name="{"}
  n = f32[8] negate(r)
  ROOT o = f32[7] negate(n)
}
ENTRY e (p: f32[8,4], q: f32[4]) -> f32[5] {
  p = f32[8,4] parameter(0)
  b = f32[4] parameter(1)
  a = ((f32[8,4], f32[4]), f32[7], u32[]) async-start(p, b), calls=f
  d = f32[7] async-done(a)
  c = f32[7] fusion(p, b), kind=kLoop, calls=f
  ROOT g = f32[6] negate(c)
}
"""


def test_all_errors_of_a_module():
    """Each once, in order, and nothing of what follows from one: of users of what failed, and of callers of its computation."""
    with pytest.raises(XlaEmittersError) as error:
        parse_hlo(SEVERAL, "t.hlo")
    found = [error.value, *error.value.others]
    assert [(one.place.line if one.place else 0, one.message) for one in found] == [
        (2, "no HLO op 'ad' (instruction %c of computation 'sum'); did you mean 'add'?"),
        (6, "elementwise operands differ in shape"),
        (8, "'negate' cannot have this result shape"),
        (11, "no instruction 'missing' before this one in computation 'f'"),
        (13, "no computation 'nosum' before this one; did you mean 'sum'?"),
        (15, "more than 2 items in dimension 0"),
        (16, "'negate' has no attribute 'dimensions'"),
        (19, "instruction 'n' is defined twice in computation 'f'"),
        (28, "'negate' cannot have this result shape"),
    ]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        # Where the text is no instruction, or does not say where it ends, its error is the last.
        (("p = f32[4", "q = f32[5] negate(p)"), ["expected ',' or ']' after a size"]),
        (
            (P, "a = f32[5] negate(p)", "b = f32[4] negate(p", "ROOT c = f32[6] negate(p)"),
            ["'negate' cannot", "expected"],
        ),
        ((P, "a = f32[5] negate(p)", "b = no.op p", "c = f32[6] negate(p)"), ["'negate' cannot", "no HLO op 'no.op'"]),
        # The signature is compared where the root is known.
        (
            (P, "ROOT r = f32[5] negate(p)", "} g (p: f32[4]) -> f32[3] {", P, "ROOT q = f32[4] negate(p)"),
            ["'negate' cannot", "the signature"],
        ),
        (
            (P, "} e {", "p = f32[4] parameter(1)", "} g {", P, "r = f32[3] call(p), to_apply=e"),
            ["computation 'e' is defined twice", "computation 'e' has parameter(1)"],
        ),
    ],
)
def test_how_far_errors_are_looked_for(text: tuple[str, ...], messages: list[str]):
    with pytest.raises(XlaEmittersError) as error:
        parse_hlo(in_computation(*text), "t.hlo")
    found = [error.value, *error.value.others]
    assert len(found) == len(messages), error.value
    assert all(one.message.startswith(said) for one, said in zip(found, messages, strict=True)), error.value


FUSED = "f {\n  a = f32[4] parameter(0)\n  ROOT r = f32[4] negate(a)\n}\n"


@pytest.mark.parametrize(
    ("parameter", "call", "message"),
    [
        ("f32[5]", "f32[4] fusion(p), kind=kLoop", "parameter 0 of computation 'f' does not fit"),
        ("f32[4]", "f32[5] fusion(p), kind=kLoop", "the root of computation 'f' does not fit"),
        ("f32[4]", "f32[4] fusion(p, p), kind=kLoop", "computation 'f' does not fit 'fusion'"),
        ("f32[4]", "f32[4] fusion(p), kind=kLop", "no fusion kind 'kLop'"),
    ],
)
def test_a_fusion_must_fit_its_computation(parameter: str, call: str, message: str):
    with pytest.raises(VerifyError) as error:
        parse_hlo(f"{FUSED}e {{\n  p = {parameter} parameter(0)\n  ROOT c = {call}, calls=f\n}}", "t.hlo")
    assert message in error.value.message
    assert error.value.place.line == 7


def test_a_signature_must_be_that_of_the_instructions():
    with pytest.raises(VerifyError, match="the signature of computation 'e'"):
        parse_hlo("e (p: f32[5]) -> f32[4] { p = f32[4] parameter(0) }")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a computation"),
        ("HloModule", "expected the module's name"),
        ("HloModule m, is_scheduled", "expected '=' after 'is_scheduled'"),
        ("ENTRY \u00e9 { p = f32[] parameter(0) }", "t.hlo:1:7: error: [hlo.parse] expected the name of a computation"),
        ("ENTRY { p = f32[] parameter(0) }", "t.hlo:1:7: error: [hlo.parse] expected the name of a computation"),
        ("HloModule m, is_sheduled=true e { p = f32[] parameter(0) }", "did you mean 'is_scheduled'?"),
        (
            "HloModule m, replica_count=1, replica_count=1 e { p = f32[] parameter(0) }",
            "'replica_count' is given twice",
        ),
        (
            "HloModule m, input_output_alias={ {}: (0, {}, may) } e { p = f32[] parameter(0) }",
            "unknown kind of alias 'may'",
        ),
        ("ENTRY a { p = f32[] parameter(0) } ENTRY b { p = f32[] parameter(0) }", "the module has a second ENTRY"),
        ("a { p = f32[] parameter(0) } a { p = f32[] parameter(0) }", "computation 'a' is defined twice"),
        ("e { p = f32[] parameter(0)", "computation 'e' is not closed"),
        ("\x00\x01", "expected the name of a computation"),
        ("HloModule m, buffer_donor=" + "{" * 10_000, "more than 200 deep"),
        ("HloModule m, buffer_donor=" + "{" * 10_000 + "}" * 10_000, "more than 200 deep"),
        ("e { a = f32[2] " + "negate(f32[2] " * 10_000, "more than 200 deep"),
        ("e { p = f32[] parameter(" + "9" * 5000 + ") }", "does not fit 64 bits"),
        ("e { p = f32[] parameter(-1) }", "parameters are numbered from 0"),
    ],
)
def test_a_wrong_module_says_why(text: str, message: str):
    with pytest.raises(XlaEmittersError) as error:
        parse_hlo(text, "t.hlo")
    assert error.value.place is not None
    assert message in str(error.value)


def stays_an_error_of_ours(text: str) -> None:
    """Parses, or raises an error with a place that can be printed."""
    caught = None
    try:
        parse_hlo(text, "t.hlo")
    except XlaEmittersError as error:
        caught = error
    assert caught is None or (caught.place is not None and caught.render())


@pytest.mark.parametrize("name", ["concat_8", "cumlogsumexp", "kv_cache_int4", "pad_neg_interior", "take_along"])
def test_a_file_cut_anywhere_is_an_error_with_a_place(name: str):
    (path,) = CORPUS.glob(f"{name}.*.hlo")
    text = path.read_text()
    for length in range(0, len(text), 50):
        stays_an_error_of_ours(text[:length])


def test_a_file_with_a_few_characters_changed_never_ends_in_a_traceback():
    """Seeded: characters replaced, removed, pieces put elsewhere."""
    draw = random.Random(20)
    paths = sorted(CORPUS.glob("*.hlo"))
    for _ in range(400):
        text = draw.choice(paths).read_text()
        at, other = draw.randrange(len(text)), draw.randrange(len(text))
        piece = draw.choice(
            ["", draw.choice("{}()[],=:#%<>?-0a\"'\\/*\n"), text[other : other + 8], "99999999999999999999"]
        )
        stays_an_error_of_ours(text[:at] + piece + text[at + draw.randrange(4) :])


def test_time_grows_with_the_number_of_instructions():
    """Ten times the instructions take about ten times as long, not a hundred."""

    def seconds(count: int) -> float:
        lines = [f"  x{i + 1} = bf16[6,512,4096] multiply(bf16[6,512,4096] x{i}, x0)" for i in range(count)]
        text = "\n".join(("e {", "  x0 = bf16[6,512,4096] parameter(0)", *lines, "}"))
        start = time.process_time()
        parse_hlo(text)
        return time.process_time() - start

    seconds(50)
    assert seconds(2000) < 30 * max(seconds(200), 0.01)
