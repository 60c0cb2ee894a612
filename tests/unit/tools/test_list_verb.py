"""`xla-emitters list`: fusions and calls of every computation, refusals as rows, JSON, and a module of hundreds of fusions."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from in_process import messages, printed, written

from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions

ROOT = Path(__file__).parents[3]
MODULES = ROOT / "tests" / "corpus" / "modules"

# A loop whose body holds what nothing here runs: a collective and a callback.
LOOP = """HloModule loop
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT }
negated { p = f32[64] parameter(0)
  ROOT n = f32[64] negate(p) }
counted { i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT j = s32[] add(i, one) }
below { i = s32[] parameter(0)
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT }
condition { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  ROOT l = pred[] fusion(i), kind=kLoop, calls=below }
body { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  j = s32[] fusion(i), kind=kLoop, calls=counted
  f = f32[64] fusion(x), kind=kLoop, calls=negated
  WHAT
  ROOT t = (s32[], f32[64]) tuple(j, k) }
ENTRY main {
  p = f32[64] parameter(0)
  z = s32[] constant(0)
  f = f32[64] fusion(p), kind=kLoop, calls=negated
  so = f32[64] sort(f), dimensions={0}, to_apply=less
  t = (s32[], f32[64]) tuple(z, so)
  w = (s32[], f32[64]) while(t), condition=condition, body=body
  ROOT r = f32[64] get-tuple-element(w), index=1
}
"""
RUNS = LOOP.replace("WHAT", "k = f32[64] negate(f)")
REFUSED = LOOP.replace(
    "WHAT",
    """ar = f32[64] custom-call(f), custom_call_target="xla_ffi_python_cpu_callback"
  k = f32[64] custom-call(ar), custom_call_target="xla_ffi_python_gpu_callback\"""",
)
ELIDED = """f { p = f32[64] parameter(0)
  c = f32[64] constant({...})
  ROOT n = f32[64] add(p, c) }
ENTRY main {
  p = f32[64] parameter(0)
  ROOT r = f32[64] fusion(p), kind=kLoop, calls=f
}
"""


def as_json(path: Path, *words: str) -> dict[str, Any]:
    return json.loads(printed("list", path, "--json", *words))


def module(tmp_path: Path, text: str) -> Path:
    path = written(tmp_path / "m.hlo", text)
    return path


def test_rows_of_every_computation(tmp_path: Path) -> None:
    """Callees before callers; what is refused has its reason; the exit code is 0."""
    rows = printed("list", module(tmp_path, REFUSED)).splitlines()
    assert [row.split()[:3] for row in rows[:-1]] == [
        ["l", "condition", "loop"],
        ["j", "body", "loop"],
        ["f", "body", "loop"],
        ["f", "main", "loop"],
        ["ar", "body", "xla_ffi_python_cpu_callback"],
        ["k", "body", "xla_ffi_python_gpu_callback"],
        ["so", "main", "sort"],
    ]
    assert rows[2].endswith("loop (negate)                1x1x1 of 64x1x1")
    assert "not supported: " in rows[4]
    assert "not supported: " in rows[5]
    assert rows[-1] == "4 fusions, 3 library calls, 2 not supported"


@pytest.mark.tiny
def test_json(tmp_path: Path) -> None:
    data = as_json(module(tmp_path, REFUSED))
    assert set(data) == {"target", "kernels", "library_calls", "other_calls", "of_sizes", "no_kernels"}
    for kernel in data["kernels"]:
        assert set(kernel) == {
            *("name", "computation", "emitter", "hero", "launch", "calls", "supported", "ptx", "reason"),
            *("other_compiler", "place", "results"),
        }
        assert kernel["launch"][0]["grid"] == [1, 1, 1]
        assert (kernel["supported"], kernel["ptx"], kernel["reason"]) == (True, True, "")
    assert [kernel["place"].rpartition("m.hlo")[2] for kernel in data["kernels"]] == [
        ":18:8",
        ":22:3",
        ":23:3",
        ":30:3",
    ]
    other, call = data["library_calls"]  # the custom-calls alone
    assert (other["name"], other["supported"]) == ("ar", False)
    assert (call["name"], call["target"], call["supported"]) == ("k", "xla_ffi_python_gpu_callback", False)
    assert [(call["name"], call["supported"]) for call in data["other_calls"]] == [("so", True)]


GEMM = """HloModule m
dotted {
  a = f32[33,64] parameter(0)
  b = f32[64,128] parameter(1)
  ROOT d = f32[33,128] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
negated {
  p = f32[33,128] parameter(0)
  ROOT n = f32[33,128] negate(p)
}
ENTRY main {
  a = f32[33,64] parameter(0)
  b = f32[64,128] parameter(1)
  gemm_fusion_dot = f32[33,128] fusion(a, b), kind=kCustom, calls=dotted,
    backend_config={"fusion_backend_config":{"kind":"__triton_gemm"}}
  ROOT f = f32[33,128] fusion(gemm_fusion_dot), kind=kLoop, calls=negated
}
"""


def test_a_fusion_that_becomes_a_library_call_is_listed_as_one(tmp_path: Path) -> None:
    """In its module the product is a call, as `explain` says, and not a loop kernel."""
    path = module(tmp_path, GEMM)
    product, negated, end = printed("list", path).splitlines()
    assert product.split()[:4] == ["gemm_fusion_dot", "main", "call", "(dot)"]
    assert "call gemm; XLA: __triton_gemm" in product
    assert "blocks" not in product
    assert negated.split()[2:] == ["loop", "(negate)", "33x1x1", "of", "128x1x1"]
    assert end == "2 fusions, 1 library call, 0 not supported"
    kernels = {kernel["name"]: kernel for kernel in as_json(path)["kernels"]}
    found = kernels["gemm_fusion_dot"]
    assert (found["calls"], found["launch"], found["emitter"]) == (["gemm"], [], None)
    assert (found["supported"], found["ptx"]) == (True, False)


@pytest.mark.parametrize("name", ["attention_gradient", "attention_gradient.triton", "bit_generators", "conv_net"])
def test_modules_of_xla_are_listed_as_their_text_says(name: str) -> None:
    """Every fusion and every custom-call of a control computation, once, where no chain of fusions becomes one kernel."""
    path = next(iter(sorted(MODULES.glob(f"{name}*.hlo"))), None)
    if path is None:
        pytest.skip(f"no module {name}")
    text = path.read_text()
    data = as_json(path, "--triton", "split")
    entry = text[text.index("\nENTRY") :]
    fusions = re.findall(r"^\s+(?:ROOT )?%(\S+) = [^\n]*? fusion\(", entry, re.MULTILINE)
    calls = re.findall(r"^\s+(?:ROOT )?%(\S+) = [^\n]*? custom-call\(", entry, re.MULTILINE)
    of_entry = [row["name"] for row in data["kernels"] if row["computation"] in entry.split("(")[0]]
    assert set(fusions) <= set(of_entry)
    assert [row["name"] for row in data["library_calls"] if row["name"] in calls] == calls
    assert all(row["supported"] for row in data["kernels"])


def test_elided_constants_are_listed(tmp_path: Path) -> None:
    (kernel,) = as_json(module(tmp_path, ELIDED))["kernels"]
    assert (kernel["name"], kernel["emitter"], kernel["supported"]) == ("r", "loop", True)


def test_an_entry_that_is_one_kernel() -> None:
    (kernel,) = as_json(ROOT / "examples" / "not_pred.hlo")["kernels"]
    assert kernel["ptx"]


def test_a_fusion_without_code_says_why(tmp_path: Path) -> None:
    """The one beside it is listed as ever."""
    text = """bad { p = f32[8,8] parameter(0)
  ROOT c = f32[8,8] cholesky(p), lower=true }
good { p = f32[8,8] parameter(0)
  ROOT n = f32[8,8] negate(p) }
ENTRY main {
  p = f32[8,8] parameter(0)
  a = f32[8,8] fusion(p), kind=kCustom, calls=bad, backend_config={"fusion_backend_config":{"kind":"__custom_fusion"}}
  ROOT b = f32[8,8] fusion(a), kind=kLoop, calls=good
}
"""
    bad, good = as_json(module(tmp_path, text))["kernels"]
    assert (bad["supported"], bad["ptx"], bad["emitter"], bad["launch"]) == (False, False, None, [])
    assert "__custom_fusion" in bad["reason"]
    assert (good["supported"], good["reason"]) == (True, "")


@pytest.mark.parametrize(
    "entry",
    [
        """%s = (f32[8], f32[8], u32[]) copy-start(%x)
  %d = f32[8] copy-done(%s)
  ROOT %n = f32[8] negate(%d)""",
        """%s = f32[8] call(%x), to_apply=%sines
  ROOT %n = f32[8] negate(%s)""",
    ],
)
def test_calls_and_copies_are_part_of_an_entry_that_is_one_kernel(entry: str, tmp_path: Path) -> None:
    """As `compile` makes of it."""
    path = tmp_path / "m.hlo"
    path.write_text(f"""%sines {{ %x = f32[8] parameter(0)
  ROOT %s = f32[8] sine(%x) }}
ENTRY %main {{ %x = f32[8] parameter(0)
  {entry} }}
""")
    listed = json.loads(printed("list", path, "--json"))
    assert [(kernel["name"], kernel["supported"]) for kernel in listed["kernels"]] == [("main", True)]
    assert listed["other_calls"] == []
    assert ".entry main(" in printed("compile", path)


@pytest.mark.parametrize("rows", ["4", "?"])
def test_a_collective_of_a_program_is_a_row(rows: str, tmp_path: Path) -> None:
    """With arrays of known sizes all devices run it; with others it is refused."""
    path, array = tmp_path / "p.mlir", f"tensor<{rows}x4xf32>"
    path.write_text(f"""func.func @main(%a: {array}) -> {array} {{
      %0 = "stablehlo.all_reduce"(%a) ({{
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %1 = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %1 : tensor<f32>
      }}) {{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : ({array}) -> {array}
      return %0 : {array}
    }}""")
    (row,) = json.loads(printed("list", "--json", path))["other_calls"]
    assert (row["target"], row["supported"]) == ("all-reduce", rows == "4")
    if rows == "4":
        assert "ran on 2 devices" in printed("run", path, "--platform", "cpu")
    else:
        assert "the other devices" in row["reason"]
        said = messages(1, "run", path, "--platform", "cpu")
        assert re.search(r"p\.mlir:2:12: error: .*'all-reduce' .* is not taken: it needs the other devices", said)


@pytest.mark.parametrize("root", ["", "ROOT both = (bf16[4096,8192], bf16[4096,8192]) tuple(a, b)"])
def test_launches_are_those_of_what_is_compiled(tmp_path: Path, root: str) -> None:
    """Of several fusions, which may become one kernel, by the rules of `--tune auto`; of one fusion XLA's."""
    text = f"""HloModule m, is_scheduled=true
f {{ x = s8[4096,8192] parameter(0)
  ROOT c = bf16[4096,8192] convert(x) }}
g {{ x = bf16[4096,8192] parameter(0)
  ROOT n = bf16[4096,8192] negate(x) }}
ENTRY main {{ x = s8[4096,8192] parameter(0)
  a = bf16[4096,8192] fusion(x), kind=kLoop, calls=f
  {"" if root else "ROOT "}b = bf16[4096,8192] fusion(a), kind=kLoop, calls=g
  {root} }}
"""
    path = module(tmp_path, text)
    rows = as_json(path)["kernels"]
    compiled = compile_module(read_module(path), CompileOptions(stage="xla_gpu", record="none")).kernels
    assert [row["launch"][0]["grid"] for row in rows] == [list(kernel.launch.grid) for kernel in compiled]


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "rms_norm_bf16", "clip_by_global_norm"])
def test_chains_that_one_kernel_reads_once_are_one_row(name: str) -> None:
    path = MODULES / f"{name}.hlo"
    found = [launch["kernel"] for row in as_json(path)["kernels"] for launch in row["launch"]]
    compiled = compile_module(read_module(path), CompileOptions(stage="xla_gpu", record="none")).kernels
    assert len(found) == len(compiled)
