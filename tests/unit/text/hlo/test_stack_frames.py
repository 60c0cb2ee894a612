"""Lines of Python: which frame of a stack is shown, tables of both numberings, callers, and the same lines from HLO and StableHLO."""

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr

from xla_emitters.graph.entry import entry_of
from xla_emitters.text.hlo import parse_hlo, print_hlo
from xla_emitters.text.hlo.stack_frames import STACK_TABLES, PythonFrame, PythonLines, StackTables, own_frame, stacks_of
from xla_emitters.text.stablehlo import parse_stablehlo

MINE = PythonFrame("/home/me/train.py", 22, "step")
TABLES = """FileNames
1 "/home/me/train.py"
2 "/venv/lib/python3.12/site-packages/flax/linen/linear.py"
3 "/home/me/lib/train.py"

FunctionNames
1 "<module>"
2 "step"
3 "Dense.__call__"

FileLocations
1 {file_name_id=1 function_name_id=1 line=40 end_line=40 column=4 end_column=20}
2 {file_name_id=1 function_name_id=2 line=22 end_line=22 column=4 end_column=20}
3 {file_name_id=2 function_name_id=3 line=271}
4 {file_name_id=3 function_name_id=2 line=7}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}
4 {file_location_id=4 parent_frame_id=1}
"""
MODULE = f"""HloModule m

{TABLES}
fused {{
  p = f32[4] parameter(0)
  d = f32[4] negate(p), metadata={{op_name="a" stack_frame_id=3}}
  e = f32[4] exponential(d), metadata={{op_name="a" stack_frame_id=3}}
  b = f32[4] broadcast(e), dimensions={{0}}, metadata={{op_name="b" stack_frame_id=1}}
  ROOT s = f32[4] sine(b), metadata={{op_name="c" stack_frame_id=4}}
}}
alone {{
  p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p)
}}
ENTRY main {{
  p = f32[4] parameter(0)
  f = f32[4] fusion(p), kind=kLoop, calls=fused, metadata={{op_name="c" stack_frame_id=4}}
  g = f32[4] fusion(f), kind=kLoop, calls=alone, metadata={{op_name="g" stack_frame_id=2}}
  h = f32[4] fusion(g), kind=kLoop, calls=alone, metadata={{op_name="g" source_file="/old/way.py" source_line=5}}
  ROOT o = f32[4] copy(h)
}}
"""


def shown(module: ModuleOp, computation: str) -> list[tuple[str, float]]:
    lines = PythonLines(module)
    (found,) = (op for op in module.ops if getattr(op, "sym_name", None) == StringAttr(computation))
    return [(lines.shown(frame), count) for frame, count in lines.of(found.instructions)]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("stack", "line"),
    [
        (["/venv/lib/python3.12/site-packages/flax/linear.py", "/home/me/train.py"], 1),
        (
            [
                "/usr/lib/python3/dist-packages/jax/_src/x.py",
                "/usr/lib/python3.11/functools.py",
                "/tmp/ipykernel_7/9.py",
            ],
            2,
        ),
        (["C:\\venv\\Lib\\site-packages\\haiku\\a.py", "C:\\me\\b.py"], 1),
        (["<string>", "<frozen runpy>", "<ipython-input-3>"], 2),
        (["/home/me/a.py", "/home/me/b.py"], 0),
        (["/v/site-packages/only.py", "<string>"], 0),
    ],
)
def test_the_innermost_frame_of_own_code_is_shown(stack: list[str], line: int) -> None:
    assert own_frame([PythonFrame(file, number) for number, file in enumerate(stack)]) == PythonFrame(stack[line], line)


def test_no_frame_is_shown_for_an_empty_stack() -> None:
    assert own_frame([]) is None


def test_parents_as_xla_prints_them_and_as_they_are() -> None:
    """XLA prints a parent as its number + 1; with plain numbers, 0 or no parent ends a stack."""
    stacks = stacks_of(TABLES)
    assert [frame.line for frame in stacks[3]] == [271, 22, 40]
    assert [frame.line for frame in stacks[4]] == [7]
    plain = TABLES
    for number, parent in ((1, 0), (2, 1), (3, 2), (4, 0)):
        plain = plain.replace(
            f"_id={number} parent_frame_id={max(1, number if number < 4 else 1)}}}",
            f"_id={number} parent_frame_id={parent}}}",
        )
    assert stacks_of(plain) == stacks
    assert stacks_of(plain.replace(" parent_frame_id=0", "")) == stacks


def test_broken_tables_end_a_stack() -> None:
    """Rows that are missing, and circles."""
    parents = ((1, 9, 3), (2, 1, 2), (3, 1, 4))
    rows = "\n".join(["StackFrames", *(f"{n} {{file_location_id={at} parent_frame_id={up}}}" for n, at, up in parents)])
    assert {number: len(stack) for number, stack in stacks_of(f"{TABLES.split('StackFrames')[0]}{rows}").items()} == {
        1: 1,
        2: 1,
        3: 1,
    }
    assert stacks_of("nonsense") == {}


def test_tables_are_written_as_they_are_read() -> None:
    tables = StackTables()
    stacks = [
        (PythonFrame('/a "b"\\c.py', 3, "f"), PythonFrame("/d.py", 9, "<module>")),
        (PythonFrame("/d.py", 9, "<module>"),),
    ]
    numbers = [tables.add(stack) for stack in (*stacks, stacks[0])]
    assert numbers[0] == numbers[2] != numbers[1]
    found = stacks_of(tables.text())
    assert [found[number] for number in numbers[:2]] == stacks
    module = parse_hlo(f"HloModule m\n\n{tables.text()}\n\nENTRY e {{ ROOT p = f32[] parameter(0) }}")
    assert module.attributes[STACK_TABLES] == StringAttr(tables.text())
    assert StackTables().text() == ""


def test_a_kernel_has_the_lines_of_its_instructions() -> None:
    """Those that repeat values do not count; two files of one name are told apart by their folders."""
    module = parse_hlo(MODULE, "m.hlo")
    assert shown(module, "fused") == [("me/train.py:22 in step", 2), ("lib/train.py:7 in step", 1)]


def test_instructions_without_a_frame_have_those_of_their_callers() -> None:
    """Each of several callers gets an equal part; what runs nothing and says nothing has no line."""
    module = parse_hlo(MODULE, "m.hlo")
    assert shown(module, "alone") == [("me/train.py:22 in step", 0.5), ("way.py:5", 0.5)]
    copy = next(op for op in entry_of(module).instructions if op.opcode == "copy")
    assert PythonLines(module).of([copy]) == []


def test_a_module_without_frames_has_no_lines() -> None:
    assert not PythonLines(
        parse_hlo('ENTRY e { p = f32[4] parameter(0) \n ROOT n = f32[4] negate(p), metadata={op_name="x"} }')
    )


STABLEHLO = """
#loc1 = loc("/home/me/train.py":40:4 to :20)
#loc2 = loc("/home/me/train.py":22:4 to :20)
#loc3 = loc("/venv/lib/python3.12/site-packages/flax/linen/linear.py":271:1)
#main = loc("<module>"(#loc1))
#step = loc("step"(#loc2))
#dense = loc("Dense.__call__"(#loc3))
#stack = loc(callsite(#dense at callsite(#step at #main)))
#outer = loc(callsite(#step at #main))
module @m {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %arg0 : tensor<4xf32> loc("jit(f)/neg"(#stack))
    %1 = func.call @g(%0) : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/g"(#main))
    %2 = func.call @g(%1) : (tensor<4xf32>) -> tensor<4xf32> loc("jit(f)/g"(#outer))
    return %2 : tensor<4xf32>
  }
  func.func private @g(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %arg0 : tensor<4xf32> loc("sin")
    return %0 : tensor<4xf32>
  }
}
"""


def test_call_sites_of_stablehlo_are_the_same_stacks() -> None:
    """The function is the name around a place, the op's own name is not; a function that two lines call is both lines'."""
    module = parse_stablehlo(STABLEHLO, "m.mlir")
    tables = module.attributes[STACK_TABLES]
    assert isinstance(tables, StringAttr)
    assert (PythonFrame(MINE.file, 22, "step"), PythonFrame(MINE.file, 40, "<module>")) in {
        stack[1:] for stack in stacks_of(tables.data).values()
    }
    lines = PythonLines(module)
    (negate,) = (op for op in entry_of(module).instructions if op.opcode == "negate")
    assert negate.attributes["metadata"] == StringAttr(
        '{op_name="jit(f)/neg" source_file="/home/me/train.py" source_line=22 stack_frame_id=3}'
    )
    assert [(lines.shown(frame), count) for frame, count in lines.of([negate])] == [("train.py:22 in step", 1)]
    assert shown(module, "g") == [("train.py:40 in <module>", 0.5), ("train.py:22 in step", 0.5)]
    assert shown(parse_hlo(print_hlo(module), "m.hlo"), "g") == shown(module, "g")


LONG = "9" * 5000


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("stack_frame_id=1", f"stack_frame_id={LONG}", "train.py:5"),
        ("source_line=5", f"source_line={LONG}", "train.py:0"),
        ("line=40", f"line={LONG}", "train.py:0"),
        ("1 {file_name_id", f"{LONG} {{file_name_id", "train.py:5"),
    ],
)
def test_a_number_of_thousands_of_digits_is_none(old: str, new: str, line: str) -> None:
    """Python reads no more than 4300 digits."""
    tables = """FileNames
1 "/home/me/train.py"

FileLocations
1 {file_name_id=1 line=40}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
"""
    frame = "" if "source_line" in old else "stack_frame_id=1"
    metadata = f'{{source_file="/home/me/train.py" source_line=5 {frame}}}'
    text = f"HloModule m\n\n{tables}\nENTRY main {{ x = f32[4] parameter(0)\n  ROOT n = f32[4] negate(x), metadata={metadata} }}\n"
    module = parse_hlo(text.replace(old, new))
    assert PythonLines(module).by_name(module)["n"] == line
