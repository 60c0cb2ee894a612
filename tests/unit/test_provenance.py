"""Every op says which HLO instruction it is from, after every pass and down to the LLVM dialect."""

from collections.abc import Callable
from pathlib import Path

import pytest
from runtime.small_programs import PROGRAMS, TARGET
from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, IntAttr, ModuleOp, NameLoc, StringAttr, UnknownLoc
from xdsl.ir import Attribute, Operation

from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.pipelines.compiler import compile_module, lower_for_tools, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES, FOR_TOOLS, KERNEL
from xla_emitters.pipelines.recorder import Observer
from xla_emitters.rewrite.effects import is_constant, is_terminator

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.hlo"))
GELU = next(path for path in EXAMPLES if path.stem == "gelu")

MULTIPLY, ADD, TANH = ("arith.mulf", "llvm.fmul"), ("arith.addf", "llvm.fadd"), ("math.tanh", "func.call", "llvm.call")
COMPUTE = {
    "square": MULTIPLY,
    "cube": MULTIPLY,
    "multiply_3": MULTIPLY,
    "add_1": ADD,
    "multiply_2": MULTIPLY,
    "tanh_0": TANH,
    "add_0": ADD,
    "multiply_1": MULTIPLY,
    "multiply_0": MULTIPLY,
}
"""GELU's nine compute instructions, and the op that each is, before and in the LLVM dialect."""

Look = Callable[[str, str | None, ModuleOp], None]


def after_every_pass(source: str | Path, look: Look, target: str = "h200") -> None:
    """Calls look(pass, stage, live module) after emission and after each pass."""
    options = CompileOptions(target=target, stage="llvm-dialect", record="none")

    def observe(name: str, stage: str | None, module: ModuleOp) -> None:
        look(name, stage, module)
        if stage == EXECUTABLE_STAGES[-1]:
            lower_for_tools(module, options, look)

    def observers(planned: PlannedKernel) -> Observer:
        return observe

    compile_module(read_module(source), options, observers=observers)


def instructions_of(location: Attribute) -> list[str]:
    """The HLO instructions that a location names."""
    match location:
        case NameLoc():
            return [location.desc.data]
        case FusedLoc():
            return [name for part in location.locations for name in instructions_of(part)]
        case _:
            return []


def is_excused(op: Operation) -> bool:
    """Terminators, and constants that a whole function shares."""
    parent = op.parent_op()
    return is_terminator(op) or (is_constant(op) and parent is not None and parent.name in ("func.func", "llvm.func"))


def line_of(instruction: str) -> tuple[int, int]:
    """Where GELU's text defines an instruction: line and column, from 1, of its name."""
    for number, line in enumerate(GELU.read_text().splitlines(), 1):
        if f"%{instruction} = " in line:
            return number, line.index(f"%{instruction}") + 1
    raise KeyError(instruction)


@pytest.mark.parametrize("source", [*PROGRAMS.values(), *EXAMPLES], ids=[*PROGRAMS, *(path.stem for path in EXAMPLES)])
def test_no_op_is_of_unknown_origin(source: str | Path) -> None:
    """But terminators and function-level constants; function declarations too say who calls them."""
    seen: list[str] = []

    def look(name: str, stage: str | None, module: ModuleOp) -> None:
        seen.append(name)
        lost = [op for op in module.walk() if isinstance(op.location, UnknownLoc) and not is_excused(op)]
        assert not lost, f"after {name}: {sorted({op.name for op in lost})}"

    after_every_pass(source, look, TARGET if isinstance(source, str) else "h200")
    assert len(seen) == 1 + len(KERNEL) + len(FOR_TOOLS)


def test_every_hlo_instruction_has_its_place() -> None:
    module = read_module(GELU)
    places = {op.attributes["name"].data: op.location for op in module.walk() if "name" in op.attributes}
    places |= {op.properties["name"].data: op.location for op in module.walk() if "name" in op.properties}
    for instruction in COMPUTE:
        line, column = line_of(instruction)
        file = FileLineColLoc(StringAttr(str(GELU)), IntAttr(line), IntAttr(column))
        assert places[instruction] == NameLoc(StringAttr(instruction), file)


def reads_id(op: Operation) -> bool:
    """A call that only asks for the number of the thread or block."""
    return isinstance(op, llvm.CallOp) and op.callee is not None and op.callee.string_value().startswith("sreg.")


def test_each_compute_instruction_owns_its_ops() -> None:
    """One op each, four after unrolling, and of no other instruction."""
    unrolled = False

    def look(name: str, stage: str | None, module: ModuleOp) -> None:
        nonlocal unrolled
        unrolled |= name == "xla-gpu-optimize-loops"
        ops = [op for op in module.walk() if not reads_id(op)]
        for instruction, kinds in COMPUTE.items():
            owned = [op for op in ops if op.name in kinds and instructions_of(op.location) == [instruction]]
            assert len(owned) == (4 if unrolled else 1), f"after {name}: {instruction} owns {len(owned)} of {kinds}"
        computing = {kind for kinds in COMPUTE.values() for kind in kinds}
        strangers = [op for op in ops if op.name in computing and not set(instructions_of(op.location)) <= set(COMPUTE)]
        assert not strangers, f"after {name}: {strangers}"

    after_every_pass(GELU, look)
    assert unrolled


def test_what_a_load_is_for_is_known() -> None:
    """Memory accesses name the parameter they read and the fusion whose result they write."""
    names: dict[str, list[str]] = {}

    def look(name: str, stage: str | None, module: ModuleOp) -> None:
        if stage == "llvm-dialect":
            for op in module.walk():
                if op.name in ("llvm.load", "llvm.store", "llvm.func"):
                    names.setdefault(op.name, []).extend(instructions_of(op.location))

    after_every_pass(GELU, look)
    assert "param" in names["llvm.load"]
    assert "fusion" in names["llvm.store"]
    # The entry, and the declaration of libdevice's function at the instruction that calls it.
    assert names["llvm.func"] == ["tanh_0", "fusion"]


def test_location_as_printed() -> None:
    """`loc("tanh_0"("gelu.hlo":18:3))` behind the op, with the line of the file."""
    line, column = line_of("tanh_0")
    wanted = f'loc("tanh_0"("{GELU}":{line}:{column}))'

    def look(name: str, stage: str | None, module: ModuleOp) -> None:
        text = print_ir(module, locations=True).splitlines()
        marked = [row for row in text if any(op in row for op in ("math.tanh", "call @__nv_tanhf"))]
        assert marked, name
        assert all(row.endswith(wanted) for row in marked), f"after {name}: {marked}"
        assert "loc(" not in print_ir(module), name

    after_every_pass(GELU, look)
