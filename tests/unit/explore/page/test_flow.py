"""Control flow as the page draws it: blocks and branches that xDSL, LLVM and our reader of PTX find; in Chromium, at the right places."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import llvmlite.binding as llvmlite
import pytest
from chromium import MISSING, browser
from tools_here import SASS, needs

import xla_emitters.explore.page
from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import llvm
from xla_emitters.pipelines.compiler import compile
from xla_emitters.text.ptx import read_ptx
from xla_emitters.text.ptx.syntax import Instruction, Label
from xla_emitters.tools.main import main
from xla_emitters.trace import Trace

ROOM, EXAMPLES = Path(xla_emitters.explore.page.__file__).parent, Path(__file__).parents[4] / "examples"
NODE = shutil.which("node")

Block = tuple[int, list[tuple[int, str]]]
"""How many instructions, and where control goes: the number of a block, and "if", "else", a case, or ""."""


def drawn(text: str, stage: str) -> list[Any]:
    """`flowBlocks` of flow.js."""
    values = json.dumps([text.split("\n"), stage])
    code = f"console.log(JSON.stringify(require({json.dumps(str(ROOM / 'flow.js'))}).flowBlocks(...{values})))"
    done = subprocess.run([NODE or "node", "-e", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def plain(blocks: list[Any]) -> list[Block]:
    def kind(when: str) -> str:
        return "else" if when.startswith("not ") else "if" if when.startswith("%") and "=" not in when else when

    return [(len(block["lines"]), [(edge["to"], kind(edge["when"])) for edge in block["next"]]) for block in blocks]


def of_dialect(text: str) -> list[Block]:
    functions = [op for op in parse_ir(text).walk() if isinstance(op, llvm.FuncOp) and op.body.blocks]
    blocks = [block for function in functions for block in function.body.blocks]
    found = list[Block]()
    for block in blocks:
        ways = [blocks.index(way) for way in block.last_op.successors]
        found.append((len(block.ops), [*zip(ways, ["if", "else"] if len(ways) == 2 else [""], strict=False)]))
    return found


def of_llvm_ir(text: str) -> list[Block]:
    module = llvmlite.parse_assembly(text)
    blocks = [block for function in module.functions if not function.is_declaration for block in function.blocks]
    found = list[Block]()
    for block in blocks:
        instructions = [*block.instructions]
        names = [each.name for each in instructions[-1].operands if each.value_kind.name == "basic_block"]
        ways = [next(n for n, each in enumerate(blocks) if each.name == name) for name in names[::-1]]
        found.append((len(instructions), [*zip(ways, ["if", "else"] if len(ways) == 2 else [""], strict=False)]))
    return found


def of_ptx(text: str) -> list[Block]:
    parts, labels = list[list[Instruction]]([[]]), dict[str, int]()
    (function,) = (each for each in read_ptx(text, "k.ptx").functions.values() if each.body is not None)
    is_ended = False
    for item in function.body or ():
        if isinstance(item, Label):
            parts.append([])
            labels[item.name] = len(parts) - 1
            is_ended = False
        elif isinstance(item, Instruction):
            if is_ended:
                parts.append([])
            parts[-1].append(item)
            is_ended = item.parts[0] in ("bra", "ret")
    found = list[Block]()
    for n, part in enumerate(parts):
        last, ways = part[-1] if part else None, list[tuple[int, str]]()
        if last is not None and last.parts[0] == "bra":
            (target,) = last.operands
            ways = [(labels[getattr(target, "name", "")], "if" if last.guard else "")]
        if last is None or last.parts[0] not in ("bra", "ret"):
            ways = [(n + 1, "")]
        elif last.guard:
            ways += [(n + 1, "else")]
        found.append((len(part), ways))
    return found


READERS = {"llvm-dialect": of_dialect, "llvm": of_llvm_ir, "ptx": of_ptx}


EDGES = """
  const place = (edge, length) => { const at = edge.getPointAtLength(length); return [at.x, at.y]; };
  return [...document.querySelectorAll(".edge.flow")].map((edge) => ({
    from: Number(edge.dataset.from), to: Number(edge.dataset.to), isBack: edge.classList.contains("back"),
    begin: place(edge, 0), end: place(edge, edge.getTotalLength()),
  }));
"""


def with_loop(tmp_path: Path) -> Path:
    """A kernel with a loop that is too long for LLVM to unroll."""
    path = tmp_path / "loop.hlo"
    path.write_text("""HloModule m
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}
%fused (p: f32[3001,64]) -> f32[64] {
  %p = f32[3001,64]{1,0} parameter(0)
  %z = f32[] constant(0)
  ROOT %r = f32[64]{0} reduce(%p, %z), dimensions={0}, to_apply=%add
}
ENTRY %main (p: f32[3001,64]) -> f32[64] {
  %p = f32[3001,64]{1,0} parameter(0)
  ROOT %fusion = f32[64]{0} fusion(%p), kind=kInput, calls=%fused
}
""")
    return path


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("name", ["row_sum.hlo", "loop"])
def test_blocks_are_those_that_other_readers_find(name: str, tmp_path: Path) -> None:
    path = with_loop(tmp_path) if name == "loop" else EXAMPLES / name
    trace: Trace = compile(path, cache=False, stage="ptx", record="stages").trace
    for stage, read in READERS.items():
        text = trace[stage].ir or ""
        blocks = drawn(text, stage)
        assert plain(blocks) == read(text), stage
        assert len(blocks) > 2
        # What computes a condition is a comparison.
        assert all(
            "cmp" in edge["why"] or "setp" in edge["why"] for block in blocks for edge in block["next"] if edge["when"]
        )
    if name == "loop":
        assert any(
            edge["to"] <= n for n, block in enumerate(drawn(trace["ptx"].ir or "", "ptx")) for edge in block["next"]
        )


PTX = """
.func (.param .b32 out) helper ();
.visible .entry k(
	.param .u64 p
)
.maxntid 128
{
	.reg .pred %p<3>;
	.loc 1 1 0
	setp.eq.s32 	%p1, %r1, 0;
	@!%p1 bra 	$L_end;
	// a comment
	@%p1 ret;
$L_next:
	min.s32 %r2, %r1, 2;
$L_table: .branchtargets $L_next, $L_end, $L_a;
	brx.idx %r2, $L_table;
$L_a:
	add.s32 %r1, %r1, 1;
$L_end:
	exit;
}
"""
LLVM = """
define void @k(i32 %x, i1 %c) {
  switch i32 %x, label %other [
    i32 -1, label %one
    i32 7, label %"a b"
  ]

one:                                              ; preds = %0
  br label %other

"a b":                                            ; preds = %0
  ; a comment
  br i1 %c, label %"a b", label %other

other:                                            ; preds = %one, %0
  ret void
}
"""
DIALECT = """module {
  llvm.func @other(i32) -> i32
  llvm.func @k(%x: i32, %p: !llvm.ptr) attributes {nvvm.kernel} {
    llvm.switch %x : i32, ^bb2(%x : i32) [
      0: ^bb1,
      -5: ^bb2(%x : i32)
    ]
  ^bb1:
    llvm.br ^bb2(%x : i32)
  ^bb2(%1: i32):
    llvm.return
  }
}
"""


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_all_branches_by_hand() -> None:
    """Read by hand: predicates, tables, switches, functions without a body."""
    ptx = drawn(PTX, "ptx")
    assert [block["name"] for block in ptx] == ["k", "", "$L_next", "$L_a", "$L_end"]
    assert [[(edge["to"], edge["when"]) for edge in block["next"]] for block in ptx] == [
        [(4, "not %p1"), (1, "%p1")],
        [(2, "not %p1")],
        [(2, "%r2 = 0"), (4, "%r2 = 1"), (3, "%r2 = 2")],
        [(4, "")],
        [],
    ]
    assert ptx[0]["next"][0]["why"] == "setp.eq.s32 \t%p1, %r1, 0;"
    ir = drawn(LLVM, "llvm")
    assert [[(edge["to"], edge["when"]) for edge in block["next"]] for block in ir] == [
        [(3, "default"), (1, "%x = -1"), (2, "%x = 7")],
        [(3, "")],
        [(2, "%c"), (3, "not %c")],
        [],
    ]
    dialect = drawn(DIALECT, "llvm-dialect")
    assert [block["name"] for block in dialect] == ["k", "bb1", "bb2"]
    assert [[(edge["to"], edge["when"]) for edge in block["next"]] for block in dialect] == [
        [(2, "default"), (1, "%x = 0"), (2, "%x = -5")],
        [(2, "")],
        [],
    ]


@needs(*SASS)
@pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} is not installed")
def test_branches_are_drawn_from_block_to_block(tmp_path: Path) -> None:
    """Each edge goes from the lower side of its block to the upper side of the next one, which is below it unless the edge goes back."""
    path, page = with_loop(tmp_path), tmp_path / "page.html"
    assert main(["show", str(path), "-o", str(page)]) == 0
    trace = compile(path, cache=False, stage="ptx", record="stages").trace
    with browser(1400, 900) as chromium:
        chromium.open(f"{page.as_uri()}#view=graph")
        chromium.wait("document.querySelectorAll('.node').length")
        for stage, read in READERS.items():
            chromium.run(
                "[...document.querySelectorAll('.chip')].findLast((chip) => (chip.querySelector('em') || chip.querySelector('span'))"
                f".textContent === '{stage}').click()"
            )
            chromium.wait(f"document.querySelector('.tools select')?.selectedOptions[0].text.startsWith('{stage}')")
            if stage == "llvm-dialect":
                chromium.run("document.querySelector('#flow').click()")
            chromium.wait("document.querySelector('.box')")
            expected = read(trace[stage].ir or "")
            boxes = chromium.run(
                "return [...document.querySelectorAll('.box')]"
                ".map((box) => [box.offsetLeft, box.offsetTop, box.offsetWidth, box.offsetHeight])"
            )
            assert len(boxes) == len(expected)
            for one, (x, y, width, height) in enumerate(boxes):  # no two boxes cover each other
                for left, top, across, down in boxes[one + 1 :]:
                    assert x + width <= left or left + across <= x or y + height <= top or top + down <= y
            edges = chromium.run(EDGES)
            assert {(edge["from"], edge["to"]) for edge in edges} == {
                (n, to) for n, (_, ways) in enumerate(expected) for to, _ in ways
            }
            assert all(edge["isBack"] or boxes[edge["from"]][1] < boxes[edge["to"]][1] for edge in edges)
            assert any(edge["isBack"] for edge in edges)
            for edge in edges:
                for (x, y), (left, top, width, height), side in (
                    (edge["begin"], boxes[edge["from"]], 1),
                    (edge["end"], boxes[edge["to"]], 0),
                ):
                    assert left <= x <= left + width
                    assert abs(y - (top + side * height)) <= 1
            # A click on an instruction lights the line of HLO that it is of, in the drawing and in the code.
            shown = chromium.run(
                "return [...document.querySelectorAll('.box')].map((box) => box.querySelectorAll('.l:not(.fold)').length)"
            )
            assert [n for n, (count, _) in zip(shown, expected, strict=True) if count <= 24] == [
                count for count, _ in expected if count <= 24
            ]
        chromium.run("document.querySelector('.l.fold').click()")
        chromium.wait("!document.querySelector('.box .l.fold')")
        everything = chromium.run("return document.querySelectorAll('.box .l').length")
        assert everything == sum(count for count, _ in of_ptx(trace["ptx"].ir or ""))
        chromium.run(
            "[...document.querySelectorAll('.box .l')].find((row) => row.textContent.includes('ld.global')).click()"
        )
        chromium.wait("document.querySelector('.box .l.own')")
        assert chromium.run("return document.querySelector('.box .l.own').title")
