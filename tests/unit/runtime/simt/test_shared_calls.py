"""Equal calls are computed once: each different call runs once, and no lane gets the result of another.

What runs is counted by the reads of a watched buffer: a function that reads one element a call says so how often it ran, and for whom.
"""

import re
import sys
import time
import tracemalloc
from dataclasses import dataclass, field

import numpy as np
import pytest
from unit.runtime.simt.kernels import launch
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir.func import CallOp
from xla_emitters.errors import ExecutionError
from xla_emitters.explore.check.check import check
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.passes import EXECUTABLE_STAGES
from xla_emitters.runtime.simt import execute
from xla_emitters.runtime.simt.memory import Access, Memory, Watcher
from xla_emitters.runtime.simt.shared_calls import KEPT_BYTES, KnownResults

THREADS, BLOCKS = 8, 4
LANES = THREADS * BLOCKS
HEAD = f"""
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %width = arith.constant {THREADS} : index
  %row = arith.muli %block, %width : index
  %lane = arith.addi %row, %thread : index"""


@dataclass
class Reads(Watcher):
    """Counts the active lanes of each read of argument 0."""

    lanes: list[int] = field(default_factory=list[int])

    def access(self, memory: Memory, access: Access) -> None:
        if access.buffer.number == 0 and not access.is_store:
            shape = (len(memory.blocks), memory.launch.threads)
            self.lanes.append(int(np.broadcast_to(True if access.active is None else access.active, shape).sum()))


def run(functions: str, body: str, source: np.ndarray | None = None, invariant: bool = True, **options):
    """out[lane] = %r for each lane, where `body` makes %r (i64) of %in and %lane; and how many lanes read %in, read by read."""
    source = np.arange(LANES, dtype=np.int64) * 3 + 1 if source is None else source
    mark = " {xla.invariant}" if invariant else ""
    module = parse_ir(f"""
{functions}
func.func @main(%in: tensor<{LANES}xi64>{mark}, %out: tensor<{LANES}xi64>) -> tensor<{LANES}xi64>
    attributes {{xla.entry, {launch(THREADS, BLOCKS)}}} {{{HEAD}
{body}
  %t = tensor.insert %r into %out[%lane] : tensor<{LANES}xi64>
  return %t : tensor<{LANES}xi64>
}}""")
    reads, out = Reads(), np.full(LANES, -1, np.int64)
    execute(module, [source, out], results=1, watchers=[reads], **options)
    return out, reads.lanes


CALLS = {
    "xla_gpu.pure_call": "xla_gpu.pure_call @f{n}(%in, %i) : (tensor<{L}xi64>, index) -> i64",
    "func.call": "func.call @f{n}(%in, %i) : (tensor<{L}xi64>, index) -> i64",
}


def chain(depth: int, call: str, around: str = "{calls}\n  %s = arith.addi %a, %b : i64", start: str = "") -> str:
    """@f0 reads one element (and is not a small function); each other function calls the one before twice and adds."""
    padding = "\n".join(f"  %p{k} = arith.addi %i, %i : index" for k in range(20))
    text = f"""
func.func private @f0(%in: tensor<{LANES}xi64>, %i: index) -> i64 {{
{padding}
  %x = tensor.extract %in[%i] : tensor<{LANES}xi64>
  return %x : i64
}}"""
    for n in range(depth):
        callee = call.format(n=n, L=LANES)
        calls = f"{start}\n  %a = {callee}\n  %b = {callee}"
        text += f"""
func.func private @f{n + 1}(%in: tensor<{LANES}xi64>, %i: index) -> i64 {{
{around.format(calls=calls, a=f"%a = {callee}", b=f"%b = {callee}")}
  return %s : i64
}}"""
    return text


SOURCE = np.arange(LANES, dtype=np.int64) * 3 + 1

AROUND = {
    "next to each other": "{calls}\n  %s = arith.addi %a, %b : i64",
    "the index made anew": """
  %c1 = arith.constant 1 : index
  %j = arith.addi %i, %c1 : index
  %k = arith.subi %j, %c1 : index
  {a_at_k}
  %l = arith.addi %c1, %i : index
  %m = arith.subi %l, %c1 : index
  {b_at_m}
  %s = arith.addi %a, %b : i64""",
    "in a branch that some lanes take": """
  {a}
  %c5 = arith.constant 5 : index
  %some = arith.cmpi ult, %i, %c5 : index
  %s = scf.if %some -> (i64) {{
    {b}
    %sum = arith.addi %a, %b : i64
    scf.yield %sum : i64
  }} else {{
    %sum = arith.addi %a, %a : i64
    scf.yield %sum : i64
  }}""",
    "in both branches": """
  %c5 = arith.constant 5 : index
  %some = arith.cmpi ult, %i, %c5 : index
  %s = scf.if %some -> (i64) {{
    {a}
    %sum = arith.addi %a, %a : i64
    scf.yield %sum : i64
  }} else {{
    {b}
    %sum = arith.addi %b, %b : i64
    scf.yield %sum : i64
  }}""",
    "in a loop of one round": """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %s = scf.for %v = %c0 to %c1 step %c1 iter_args(%sum = %zero) -> (i64) {{
    {a}
    {b}
    %t = arith.addi %a, %b : i64
    %u = arith.addi %sum, %t : i64
    scf.yield %u : i64
  }}""",
    "behind a branch": """
  %c5 = arith.constant 5 : index
  %some = arith.cmpi ult, %i, %c5 : index
  cf.cond_br %some, ^one, ^two
^one:
  {a}
  cf.br ^end(%a : i64)
^two:
  {b}
  cf.br ^end(%b : i64)
^end(%x: i64):
  %s = arith.addi %x, %x : i64""",
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("call", CALLS)
def test_40_functions_that_call_the_one_before_twice(call: str, around: str) -> None:
    """2**40 calls otherwise. Each lane's element is read once, whatever the way to it."""
    template = AROUND[around]
    text = CALLS[call].replace("%i)", "{index})")
    if "{a_at_k}" in template:
        template = template.replace("{a_at_k}", "{a}").replace("{b_at_m}", "{b}")
        functions = chain(40, CALLS[call], template)
        for name, index in (("%a = ", "%k"), ("%b = ", "%m")):
            functions = "\n".join(
                line.replace("%i)", f"{index})") if line.strip().startswith(name) else line
                for line in functions.split("\n")
            )
    else:
        functions = chain(40, CALLS[call], template)
    start = time.process_time()
    out, reads = run(functions, "  %r = " + text.format(n=40, L=LANES, index="%lane"))
    assert time.process_time() - start < 5
    assert np.array_equal(out, SOURCE << 40)
    assert sum(reads) == LANES


def test_two_calls_of_the_entry_are_one() -> None:
    call = CALLS["func.call"].format(n=0, L=LANES).replace("%i)", "%lane)")
    body = f"  %a = {call}\n  %b = {call}\n  %r = arith.addi %a, %b : i64"
    out, reads = run(chain(0, ""), body)
    assert np.array_equal(out, 2 * SOURCE)
    assert reads == [LANES]


def test_calls_with_two_arguments_in_turn() -> None:
    """f(i, j) + f(j, i), each of them the same of the function before: two different calls a function."""
    pair = f"(tensor<{LANES}xi64>, index, index) -> i64"
    functions = f"""
func.func private @f0(%in: tensor<{LANES}xi64>, %i: index, %j: index) -> i64 {{
  %x = tensor.extract %in[%i] : tensor<{LANES}xi64>
  %y = tensor.extract %in[%j] : tensor<{LANES}xi64>
  %two = arith.constant 2 : i64
  %z = arith.muli %y, %two : i64
  %s = arith.addi %x, %z : i64
  return %s : i64
}}"""
    for n in range(30):
        functions += f"""
func.func private @f{n + 1}(%in: tensor<{LANES}xi64>, %i: index, %j: index) -> i64 {{
  %a = xla_gpu.pure_call @f{n}(%in, %i, %j) : {pair}
  %b = xla_gpu.pure_call @f{n}(%in, %j, %i) : {pair}
  %s = arith.addi %a, %b : i64
  return %s : i64
}}"""
    body = f"""
  %c31 = arith.constant {LANES - 1} : index
  %other = arith.subi %c31, %lane : index
  %r = xla_gpu.pure_call @f30(%in, %lane, %other) : {pair}"""
    out, _ = run(functions, body)
    assert np.array_equal(out, (SOURCE + SOURCE[::-1]) * 3 << 29)


ONCE = CALLS["func.call"].format(n=0, L=LANES).replace("%i)", "%lane)")


def some(limit: int, name: str, value: str) -> str:
    """%name is the call's result in lanes below the limit, else 0."""
    return f"""
  %{name}_limit = arith.constant {limit} : index
  %{name}_some = arith.cmpi ult, %lane, %{name}_limit : index
  %{name} = scf.if %{name}_some -> (i64) {{
    %x = {value}
    scf.yield %x : i64
  }} else {{
    %x = arith.constant 0 : i64
    scf.yield %x : i64
  }}"""


@pytest.mark.parametrize(
    ("limits", "reads"),
    [
        ((10, 20, 32), [10, 10, 12]),
        ((20, 10, 20), [20]),
        ((32, 5), [32]),
        ((5, 32), [5, 27]),
    ],
)
def test_lanes_that_were_not_active_are_computed_when_they_are(limits: tuple[int, ...], reads: list[int]) -> None:
    """Each lane once, and only when it is asked for."""
    names = [f"v{n}" for n in range(len(limits))]
    body = "".join(some(limit, name, ONCE) for limit, name in zip(limits, names, strict=True))
    body += "\n  %s0 = arith.constant 0 : i64"
    for n, name in enumerate(names):
        body += f"\n  %s{n + 1} = arith.addi %s{n}, %{name} : i64"
    body += f"\n  %zero = arith.constant 0 : i64\n  %r = arith.addi %s{len(names)}, %zero : i64"
    out, found = run(chain(0, ""), body)
    lanes = np.arange(LANES)
    assert np.array_equal(out, sum(np.where(lanes < limit, SOURCE, 0) for limit in limits))
    assert found == reads


def test_what_is_written_between_is_read() -> None:
    """Of the same tensor: a call before and behind an insert."""
    call = ONCE.replace("%in,", "{})").replace("{})", "{},")
    body = f"""
  %a = {call.format("%in")}
  %seven = arith.constant 7 : i64
  %in2 = tensor.insert %seven into %in[%lane] : tensor<{LANES}xi64>
  %b = {call.format("%in2")}
  %c = {call.format("%in2")}
  %ten = arith.constant 10 : i64
  %b10 = arith.muli %b, %ten : i64
  %ab = arith.addi %a, %b10 : i64
  %r = arith.addi %ab, %c : i64"""
    out, reads = run(chain(0, ""), body, SOURCE.copy(), invariant=False)
    assert np.array_equal(out, SOURCE + 77)
    assert reads == [LANES, LANES]


def llvm_kernel(body: str, functions: str, invariant: bool) -> str:
    mark = ", xla.invariant" if invariant else ""
    return f"""
{functions}
llvm.func @main(%in: !llvm.ptr {{llvm.align = 16 : index{mark}}}, %also: !llvm.ptr {{llvm.align = 16 : index}},
    %out: !llvm.ptr {{llvm.align = 16 : index}}) attributes {{nvvm.kernel, {launch(LANES, 1)}}} {{
  %lane = nvvm.read.ptx.sreg.tid.x : i32
{body}
  %at = llvm.getelementptr inbounds %out[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, i64
  llvm.store %r, %at : i64, !llvm.ptr
  llvm.return
}}"""


PADDING = "\n".join(f"  %p{k} = llvm.add %i, %i : i32" for k in range(20))
LOAD = f"""
llvm.func internal @load(%p: !llvm.ptr, %i: i32) -> i64 {{
{PADDING}
  %at = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i64
  %x = llvm.load %at : !llvm.ptr -> i64
  llvm.return %x : i64
}}"""
CALL_LOAD = "llvm.call @load(%in, %lane) : (!llvm.ptr, i32) -> i64"


def run_llvm(module: str, in_: np.ndarray, also: np.ndarray) -> tuple[np.ndarray, list[int]]:
    out, reads = np.full(LANES, -1, np.int64), Reads()
    execute(parse_ir(module), [in_, also, out], results=1, watchers=[reads])
    return out, reads.lanes


def test_40_functions_of_the_llvm_dialect() -> None:
    functions = LOAD.replace("@load", "@f0")
    for n in range(40):
        functions += f"""
llvm.func internal @f{n + 1}(%p: !llvm.ptr, %i: i32) -> i64 {{
  %a = llvm.call @f{n}(%p, %i) : (!llvm.ptr, i32) -> i64
  %b = llvm.call @f{n}(%p, %i) : (!llvm.ptr, i32) -> i64
  %s = llvm.add %a, %b : i64
  llvm.return %s : i64
}}"""
    body = "  %r = llvm.call @f40(%in, %lane) : (!llvm.ptr, i32) -> i64"
    out, reads = run_llvm(llvm_kernel(body, functions, True), SOURCE.copy(), SOURCE.copy())
    assert np.array_equal(out, SOURCE << 40)
    assert reads == [LANES]


@pytest.mark.parametrize("invariant", [True, False])
@pytest.mark.parametrize("target", ["in", "also", "nothing"])
def test_memory_behind_pointers(target: str, invariant: bool) -> None:
    """%in and %also are one array where %in may be written: what is stored through the one is loaded through the other."""
    if invariant and target == "in":
        return  # it cannot be written
    store = f"""
  %at_target = llvm.getelementptr inbounds %{target}[%lane] : (!llvm.ptr, i32) -> !llvm.ptr, i64
  llvm.store %seven, %at_target : i64, !llvm.ptr"""
    body = f"""
  %a = {CALL_LOAD}
  %seven = llvm.mlir.constant(7 : i64) : i64
  {"" if target == "nothing" else store}
  %b = {CALL_LOAD}
  %hundred = llvm.mlir.constant(1000 : i64) : i64
  %ka = llvm.mul %a, %hundred : i64
  %r = llvm.add %ka, %b : i64"""
    in_ = SOURCE.copy()
    out, reads = run_llvm(llvm_kernel(body, LOAD, invariant), in_, SOURCE.copy() if invariant else in_)
    is_changed = not invariant and target != "nothing"
    assert np.array_equal(out, SOURCE * 1000 + (7 if is_changed else SOURCE))
    assert reads == [LANES] * (2 if is_changed else 1)


def test_a_function_that_writes_runs_every_time() -> None:
    functions = f"""
llvm.func internal @count(%p: !llvm.ptr, %i: i32) -> i64 {{
{PADDING}
  %at = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i64
  %x = llvm.load %at : !llvm.ptr -> i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %y = llvm.add %x, %one : i64
  llvm.store %y, %at : i64, !llvm.ptr
  llvm.return %y : i64
}}
llvm.func internal @twice(%p: !llvm.ptr, %i: i32) -> i64 {{
  %a = llvm.call @count(%p, %i) : (!llvm.ptr, i32) -> i64
  %b = llvm.call @count(%p, %i) : (!llvm.ptr, i32) -> i64
  llvm.return %b : i64
}}"""
    call = "llvm.call @twice(%in, %lane) : (!llvm.ptr, i32) -> i64"
    body = f"  %a = {call}\n  %b = {call}\n  %r = llvm.add %a, %b : i64"
    in_ = SOURCE.copy()
    out, _ = run_llvm(llvm_kernel(body, functions, False), in_, SOURCE.copy())
    assert np.array_equal(in_, SOURCE + 4)
    assert np.array_equal(out, 2 * SOURCE + 6)


def test_a_function_that_exchanges_lanes_runs_every_time() -> None:
    """The same argument, but other lanes are there: the mask of them is another the second time."""
    threads = 32
    padding = "\n".join(f"  %p{k} = arith.addi %x, %x : i32" for k in range(20))
    module = parse_ir(f"""
func.func private @first(%x: i32) -> i32 {{
{padding}
  %y = llvm.call_intrinsic "llvm.nvvm.activemask"() : () -> i32
  return %y : i32
}}
func.func @main(%out: tensor<{threads}xi32>) -> tensor<{threads}xi32> attributes {{xla.entry, {launch(threads, 1)}}} {{
  %lane = gpu.thread_id x
  %x = arith.index_cast %lane : index to i32
  %a = func.call @first(%x) : (i32) -> i32
  %c4 = arith.constant 4 : index
  %late = arith.cmpi uge, %lane, %c4 : index
  %r = scf.if %late -> (i32) {{
    %b = func.call @first(%x) : (i32) -> i32
    scf.yield %b : i32
  }} else {{
    scf.yield %a : i32
  }}
  %t = tensor.insert %r into %out[%lane] : tensor<{threads}xi32>
  return %t : tensor<{threads}xi32>
}}""")
    out = np.full(threads, -1, np.int32)
    execute(module, [out])
    assert out.tolist() == [-1] * 4 + [-1 << 4] * (threads - 4)


def test_recursion_that_ends_and_that_does_not() -> None:
    def factorial(base: str) -> str:
        return f"""
func.func private @factorial(%n: i64) -> i64 {{
  %one = arith.constant 1 : i64
  %last = {base}
  %r = scf.if %last -> (i64) {{
    scf.yield %one : i64
  }} else {{
    %m = arith.subi %n, %one : i64
    %f = func.call @factorial(%m) : (i64) -> i64
    %p = arith.muli %n, %f : i64
    scf.yield %p : i64
  }}
  return %r : i64
}}"""

    body = """
  %x = arith.index_cast %lane : index to i64
  %twelve = arith.constant 12 : i64
  %n = arith.remui %x, %twelve : i64
  %a = func.call @factorial(%n) : (i64) -> i64
  %b = func.call @factorial(%n) : (i64) -> i64
  %r = arith.addi %a, %b : i64"""
    out, _ = run(factorial("arith.cmpi sle, %n, %one : i64"), body)
    expected = [1]
    for n in range(1, 12):
        expected.append(expected[-1] * n)
    assert out.tolist() == [2 * expected[lane % 12] for lane in range(LANES)]
    with pytest.raises(ExecutionError, match="call each other too deeply"):
        run(factorial("arith.cmpi sgt, %n, %n : i64"), body)


def test_300_functions_one_in_another() -> None:
    call = CALLS["func.call"]
    around = """{calls}
  %one = arith.constant 1 : i64
  %s = arith.xori %a, %one : i64"""
    out, _ = run(chain(300, call, around), "  %r = " + call.format(n=300, L=LANES).replace("%i)", "%lane)"))
    assert np.array_equal(out, SOURCE)


CALL = "%a = func.call @g0(%i, %c) : (i64, i1) -> i64"
IN_A_REGION = (
    f"%a = scf.if %c -> (i64) {{ {CALL.replace('%a', '%r')}\n scf.yield %r : i64 }} else {{ scf.yield %i : i64 }}"
)


@pytest.mark.parametrize(("call", "depth"), [(CALL, 2_000), (IN_A_REGION, 1_000)])
def test_functions_one_in_another_as_deep_as_they_are(call: str, depth: int) -> None:
    """Each returns what the one before returns, and one more. The process's recursion limit stays as it is."""
    limit = sys.getrecursionlimit()
    module = parse_ir(f"""
func.func @main(%out: tensor<{LANES}xi64>) -> tensor<{LANES}xi64> attributes {{xla.entry, {launch(THREADS, BLOCKS)}}} {{{HEAD}
  %x = arith.index_cast %lane : index to i64
  %yes = arith.constant true
  %r = func.call @g0(%x, %yes) : (i64, i1) -> i64
  %t = tensor.insert %r into %out[%lane] : tensor<{LANES}xi64>
  return %t : tensor<{LANES}xi64>
}}
func.func private @g0(%i: i64, %c: i1) -> i64 {{ return %i : i64 }}
func.func private @g1(%i: i64, %c: i1) -> i64 {{
  {call}
  %one = arith.constant 1 : i64
  %s = arith.addi %a, %one : i64
  return %s : i64
}}""")
    # Cloned: xDSL's verifier of a call looks through all functions.
    main, _, template = module.body.ops
    functions = [template, *(template.clone() for _ in range(depth - 1))]
    module.body.block.add_ops(functions[1:])
    for number, function in enumerate(functions):
        function.properties["sym_name"] = StringAttr(f"g{number + 1}")
        (inner,) = (op for op in function.walk() if isinstance(op, CallOp))
        inner.properties["callee"] = SymbolRefAttr(f"g{number}")
    (first,) = (op for op in main.walk() if isinstance(op, CallOp))
    first.properties["callee"] = SymbolRefAttr(f"g{depth}")
    out = np.zeros(LANES, np.int64)
    execute(module, [out])
    assert out.tolist() == [depth + lane for lane in range(LANES)]
    assert sys.getrecursionlimit() == limit


# ---------------------------------------------------------------------------------------------- from HLO


def doubling_fusion(depth: int) -> str:
    """Each sum reads the one before at (i, j) and at (j, i), so the partitioner makes it a function of its own."""
    lines = [
        "x0 = f32[5,5] parameter(0)",
        "half = f32[] constant(0.5)",
        "halves = f32[5,5] broadcast(half), dimensions={}",
    ]
    for n in range(depth):
        lines += [
            f"turned{n} = f32[5,5] transpose(x{n}), dimensions={{1,0}}",
            f"sum{n} = f32[5,5] add(x{n}, turned{n})",
            f"{'ROOT ' if n == depth - 1 else ''}x{n + 1} = f32[5,5] multiply(sum{n}, halves)",
        ]
    return "fusion {\n  " + "\n  ".join(lines) + "\n}\n"


def test_40_functions_at_every_stage() -> None:
    text = doubling_fusion(40)
    verdict = check(text)
    assert verdict.ok, verdict.summary
    program = compile_module(read_module(text), CompileOptions(stage="llvm-dialect", record="stages"))
    for stage in EXECUTABLE_STAGES[EXECUTABLE_STAGES.index("xla_gpu") :]:
        assert len(re.findall(r"^ *(?:llvm|func)\.func", program.trace[stage].ir, re.MULTILINE)) > 35, stage


# ---------------------------------------------------------------------------------------------- what is kept


def lanes(value: float, count: int = 1000) -> np.ndarray:
    return np.full((1, count), value)


def test_arguments_are_equal_by_their_bits() -> None:
    known = KnownResults()
    base = np.arange(4096.0).reshape(4, 1024)
    swapped = base.copy()
    swapped[1, [100, 101]] = swapped[1, [101, 100]]  # the same sum, and the same where a sketch looks
    zero, minus = np.zeros((1, 999)), np.full((1, 999), -0.0)
    nan, other_nan = np.full((1, 3), np.nan), np.full((1, 3), -np.nan)
    wide, wider = np.array([[1 << 100]], object), np.array([[1 << 101]], object)
    values = [
        base,
        swapped,
        zero,
        minus,
        nan,
        other_nan,
        wide,
        wider,
        base[:2],
        base.astype(np.int64),
        base * 1j,
        (base,),
        (),
    ]
    keys = [known.key("f", [value]) for value in values]
    assert len(set(keys)) == len(values)
    copies = [tuple(part.copy() for part in value) if isinstance(value, tuple) else value.copy() for value in values]
    assert [known.key("f", [value]) for value in copies] == keys
    assert known.key("g", [base]) not in keys


def kept(known: KnownResults, number: float) -> bool:
    key = known.key("f", [lanes(number)])
    found = known.find(key, 0)
    known.release(key)
    return found is not None


def test_the_oldest_results_of_earlier_rounds_go_first() -> None:
    size = 2 * lanes(0).nbytes
    known = KnownResults(kept_bytes=3 * size, most_bytes=10 * size)
    for number in range(8):
        known.keep(known.key("f", [lanes(number)]), [lanes(-number)], None, None)
    assert known.bytes == 8 * size  # all of one round
    assert kept(known, 0)
    known.begin_round()
    known.keep(known.key("f", [lanes(8)]), [lanes(-8)], None, None)
    assert known.bytes == 3 * size
    assert [number for number in range(9) if kept(known, number)] == [0, 7, 8]
    for number in range(100, 150):
        known.keep(known.key("f", [lanes(number)]), [lanes(-number)], None, None)
    assert known.bytes == 10 * size  # one round, and more than there may be
    assert [number for number in range(100, 150) if kept(known, number)] == list(range(140, 150))


def test_nothing_is_left_of_what_goes() -> None:
    known = KnownResults(kept_bytes=0, most_bytes=0)
    known.keep(known.key("f", [lanes(1), (lanes(2), lanes(1))]), [lanes(3)], None, None)
    assert (known.bytes, known.results, known.arrays) == (0, {}, {})


def test_a_loop_does_not_pile_up_results() -> None:
    """300 rounds of two equal calls, each round with half a megabyte of other arguments and as much of results."""
    threads, blocks, rounds = 1024, 64, 300
    count = threads * blocks
    padding = "\n".join(f"  %p{k} = arith.addi %i, %i : i64" for k in range(20))
    module = parse_ir(f"""
func.func private @square(%i: i64) -> i64 {{
{padding}
  %s = arith.muli %i, %i : i64
  return %s : i64
}}
func.func @main(%out: tensor<{count}xi64>) -> tensor<{count}xi64> attributes {{xla.entry, {launch(threads, blocks)}}} {{
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %width = arith.constant {threads} : index
  %row = arith.muli %block, %width : index
  %lane = arith.addi %row, %thread : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %end = arith.constant {rounds} : index
  %zero = arith.constant 0 : i64
  %r = scf.for %v = %c0 to %end step %c1 iter_args(%sum = %zero) -> (i64) {{
    %at = arith.addi %v, %lane : index
    %x = arith.index_cast %at : index to i64
    %a = func.call @square(%x) : (i64) -> i64
    %b = func.call @square(%x) : (i64) -> i64
    %t = arith.addi %a, %b : i64
    %u = arith.addi %sum, %t : i64
    scf.yield %u : i64
  }}
  %t = tensor.insert %r into %out[%lane] : tensor<{count}xi64>
  return %t : tensor<{count}xi64>
}}""")
    out = np.zeros(count, np.int64)
    tracemalloc.start()
    execute(module, [out])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    numbers = np.arange(count)
    assert np.array_equal(out, sum(2 * (numbers + v) ** 2 for v in range(rounds)))
    assert peak < KEPT_BYTES + 16 * out.nbytes
