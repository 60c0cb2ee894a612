"""Collectives in which each device takes part alone: their value, and what is left of them; others stay.

Groups are those of XLA (collective_ops_utils.h): of replicas without a channel, of replicas with all their partitions with one, of global
numbers with `use_global_device_ids`. A value comes back as it was, or is zeros where a permute sends nothing.
"""

import numpy as np
import pytest

from xla_emitters.errors import Unsupported
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.remove_no_ops import RemoveNoOpsPass
from xla_emitters.pipelines.compiler import compile_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.runtime.cpu.cpu_launcher import run_program
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo

X = np.array([[1, -2, np.nan], [4, np.inf, 6]], np.float32)
PLUS = """plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }"""
SAME = "f32[2,3]"
# The module's counts, the instructions after the parameter p, and the results: p itself where nothing is written.
ALONE: dict[str, tuple[str, str, list[object]]] = {
    "all-reduce": ("", f"ROOT r = {SAME} all-reduce(p), replica_groups={{{{0}}}}, to_apply=plus", [X]),
    "no groups": ("", f"ROOT r = {SAME} all-reduce(p), replica_groups={{}}, to_apply=plus", [X]),
    "no attribute": ("", f"ROOT r = {SAME} all-reduce(p), to_apply=plus", [X]),
    "each its own": (
        ", num_partitions=2",
        f"ROOT r = {SAME} all-reduce(p), channel_id=1, use_global_device_ids=true, replica_groups={{{{0}},{{1}}}}, to_apply=plus",
        [X],
    ),
    "a range": (
        ", replica_count=4",
        f"ROOT r = {SAME} all-reduce(p), replica_groups=[4,1]<=[4], to_apply=plus",
        [X],
    ),
    "several": (
        "",
        f"ROOT r = ({SAME}, {SAME}) all-reduce(p, p), replica_groups={{{{0}}}}, to_apply=plus",
        [X, X],
    ),
    "all-gather": ("", f"ROOT r = {SAME} all-gather(p), replica_groups={{{{0}}}}, dimensions={{1}}", [X]),
    "another layout": ("", "ROOT r = f32[2,3]{0,1} all-gather(p), replica_groups={{0}}, dimensions={1}", [X]),
    "reduce-scatter": (
        "",
        f"ROOT r = {SAME} reduce-scatter(p), replica_groups={{{{0}}}}, dimensions={{0}}, to_apply=plus",
        [X],
    ),
    "all-to-all": ("", f"ROOT r = {SAME} all-to-all(p), replica_groups={{{{0}}}}, dimensions={{0}}", [X]),
    "all-to-all of a tuple": ("", f"ROOT r = ({SAME}) all-to-all(p), replica_groups={{{{0}}}}", [X]),
    "collective-broadcast": ("", f"ROOT r = {SAME} collective-broadcast(p), replica_groups={{{{0}}}}", [X]),
    "to itself": ("", f"ROOT r = {SAME} collective-permute(p), source_target_pairs={{{{0,0}}}}", [X]),
    "each to itself": (
        ", num_partitions=2",
        f"ROOT r = {SAME} collective-permute(p), channel_id=3, source_target_pairs={{{{1,1}},{{0,0}}}}",
        [X],
    ),
    "from nobody": ("", f"ROOT r = {SAME} collective-permute(p), source_target_pairs={{}}", [0 * np.ones_like(X)]),
    "numbers": (
        "",
        """a = u32[] replica-id()
           b = u32[] partition-id()
           ROOT r = (u32[], u32[]) tuple(a, b)""",
        [0, 0],
    ),
    "all-reduce in two": (
        "",
        f"""s = {SAME} all-reduce-start(p), replica_groups={{{{0}}}}, to_apply=plus
            ROOT r = {SAME} all-reduce-done(s)""",
        [X],
    ),
    "all-gather in two": (
        "",
        f"""s = ({SAME}, {SAME}) all-gather-start(p), replica_groups={{{{0}}}}, dimensions={{0}}
            ROOT r = {SAME} all-gather-done(s)""",
        [X],
    ),
    "permute in two": (
        "",
        f"""s = ({SAME}, {SAME}, u32[], u32[]) collective-permute-start(p), source_target_pairs={{{{0,0}}}}
            ROOT r = {SAME} collective-permute-done(s)""",
        [X],
    ),
}


def module(counts: str, text: str) -> str:
    return f"HloModule m{counts}\n{PLUS}\nENTRY e {{ p = {SAME} parameter(0)\n {text} }}\n"


@pytest.mark.parametrize("case", ALONE)
def test_a_device_alone_gets_its_own_data_back(case: str) -> None:
    counts, text, wanted = ALONE[case]
    found = parse_hlo(module(counts, text))
    before = evaluate(entry_of(found), [X])
    program = compile_module(found, CompileOptions(stage="llvm-dialect"))
    for values in (before, run_program(program, [X], "llvm-dialect")):
        for value, right in zip(values, wanted, strict=True):
            np.testing.assert_array_equal(value, np.asarray(right))


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        (", replica_count=2", "all-reduce(p), replica_groups={{0,1}}, to_apply=plus"),
        (", replica_count=2", "all-reduce(p), replica_groups={}, to_apply=plus"),
        (", replica_count=4", "all-reduce(p), replica_groups=[2,2]<=[4], to_apply=plus"),
        # With a channel, and without global numbers, a group of one replica has all of its partitions.
        (", num_partitions=2", "all-reduce(p), channel_id=1, replica_groups={{0}}, to_apply=plus"),
        ("", "all-reduce(p), replica_groups=mesh['x'=2,'y'=2] {'y'}, to_apply=plus"),
        (", num_partitions=2", "collective-permute(p), channel_id=1, source_target_pairs={{0,1},{1,0}}"),
        (", num_partitions=2", "collective-permute(p), channel_id=1, source_target_pairs={{0,0}}"),
        (", num_partitions=2", "collective-permute(p), channel_id=1, source_target_pairs={}"),
    ],
)
def test_what_needs_other_devices_is_not_run_on_one(counts: str, text: str) -> None:
    found = parse_hlo(module(counts, f"ROOT r = {SAME} {text}"))
    RemoveNoOpsPass().apply_to(found)
    root = entry_of(found).root.owner
    assert getattr(root, "opcode", "") == text.partition("(")[0]
    with pytest.raises(Unsupported, match="%r needs the other devices"):
        evaluate(entry_of(found), [X])
    program = compile_module(found, CompileOptions(stage="llvm-dialect"))
    with pytest.raises(Unsupported, match="%r needs the other devices"):
        run_program(program, [X], "llvm-dialect")


def test_the_number_of_one_of_several_devices_is_not_known() -> None:
    found = parse_hlo(module(", num_partitions=2", "ROOT r = u32[] partition-id()"))
    program = compile_module(found, CompileOptions(stage="llvm-dialect"))
    with pytest.raises(Unsupported, match="%r needs the other devices"):
        run_program(program, [X], "llvm-dialect")
    assert np.asarray(program.run_cpu(X)).tolist() == [0, 1]  # on both


GROUPS = "replica_groups = dense<0> : tensor<1x1xi64>"
BODY = """({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  })"""


@pytest.mark.parametrize(
    ("op", "zeros"),
    [
        (f'"stablehlo.all_reduce"(%x) <{{{GROUPS}}}> {BODY}', False),
        (f'"stablehlo.all_gather"(%x) <{{all_gather_dim = 1 : i64, {GROUPS}}}>', False),
        (f'"stablehlo.reduce_scatter"(%x) <{{scatter_dimension = 1 : i64, {GROUPS}}}> {BODY}', False),
        (
            '"stablehlo.all_to_all"(%x) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 1 : i64, '
            f"{GROUPS}}}>",
            False,
        ),
        (f'"stablehlo.collective_broadcast"(%x) <{{{GROUPS}}}>', False),
        ('"stablehlo.collective_permute"(%x) <{source_target_pairs = dense<0> : tensor<1x2xi64>}>', False),
        ('"stablehlo.collective_permute"(%x) <{source_target_pairs = dense<> : tensor<0x2xi64>}>', True),
    ],
)
def test_programs_too(op: str, zeros: bool) -> None:
    text = f"""module @m attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}} {{
      func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<ui32>) {{
        %0 = {op} : (tensor<2x3xf32>) -> tensor<2x3xf32>
        %1 = stablehlo.partition_id : tensor<ui32>
        return %0, %1 : tensor<2x3xf32>, tensor<ui32>
      }}
    }}"""
    ran, number = compile_program(parse_stablehlo(text), CompileOptions()).run([X])
    np.testing.assert_array_equal(ran, np.zeros_like(X) if zeros else X)
    assert int(number) == 0
