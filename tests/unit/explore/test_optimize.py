"""XLA's optimized module of a text: inputs, outputs, and errors for text that XLA refuses."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from xla_emitters.device import DEVICES, device
from xla_emitters.errors import DataError, ParseError, ToolError, Unsupported, UsageError
from xla_emitters.explore import optimize as optimizer
from xla_emitters.explore.optimize import optimize, parse_flag
from xla_emitters.explore.real_xla import Flag, description
from xla_emitters.settings import Toolchain
from xla_emitters.support.processes import RunningTool
from xla_emitters.support.text_proto import parse_text_proto
from xla_emitters.trace import Remark

SOFTMAX = Path(__file__).parents[3] / "examples" / "softmax.mlir"
NEGATE = "HloModule m\nENTRY e {\n  p = f32[64] parameter(0)\n  ROOT n = f32[64] negate(p)\n}\n"


@pytest.fixture
def xla() -> None:
    pytest.importorskip("jaxlib", reason="the extra [xla] is not installed")


@pytest.mark.usefixtures("xla")
def test_stablehlo_becomes_a_scheduled_module_of_fusions() -> None:
    text = optimize(SOFTMAX.read_text(), flags={"xla_gpu_autotune_level": 0})
    assert re.match(r"HloModule softmax, is_scheduled=true, entry_computation_layout=", text)
    assert '"kind":"__triton"' in text


@pytest.mark.usefixtures("xla")
def test_flags_reach_xla() -> None:
    """With the rewriters of softmax off, the three kernels are the emitters'."""
    flags = {"xla_disable_hlo_passes": "triton-softmax-rewriter,fusion-block-level-rewriter"}
    text = optimize(SOFTMAX.read_text(), flags=flags)
    assert "__triton" not in text
    assert len(re.findall(r" fusion\(", text)) == 3


@pytest.mark.usefixtures("xla")
def test_constants_are_whole() -> None:
    values = ", ".join(str(number * number % 97) for number in range(40))
    lines = ["p = s32[40] parameter(0)", f"c = s32[40] constant({{{values}}})", "ROOT n = s32[40] add(p, c)"]
    assert f"{{{values}}}" in optimize("\n".join(["HloModule m", "ENTRY e {", *lines, "}"]))


@pytest.mark.usefixtures("xla")
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"xla_gpu_no_such": True}, "No such compile option: 'xla_gpu_no_such'"),
        ({"xla_gpu_autotune_level": "much"}, "xla_gpu_autotune_level, 'much' is not a valid int32"),
        ({"xla_dump_to": "somewhere"}, "xla_dump_to is taken"),
    ],
)
def test_a_bad_flag_is_named(flags: dict[str, bool | str], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        optimize(NEGATE, flags=flags)


@pytest.mark.usefixtures("xla")
@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (NEGATE.replace("negate", "fuse"), "bad:4:20", "Unknown opcode: fuse"),
        (
            SOFTMAX.read_text().replace("stablehlo.exponential", "stablehlo.exp"),
            "bad:10:12",
            "'stablehlo.exp' is unknown",
        ),
    ],
)
def test_what_xla_cannot_parse_has_its_place(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError, match=re.escape(message)) as raised:
        optimize(text, name="bad")
    assert str(raised.value.place) == place


def test_an_unknown_size_is_refused_with_its_place() -> None:
    text = "func.func @main(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {\n  return %x : tensor<4x?xf32>\n}\n"
    with pytest.raises(Unsupported, match="a size is unknown") as raised:
        optimize(text, name="program.mlir")
    assert str(raised.value.place) == "program.mlir:1:21"


def test_an_optimized_module_is_not_optimized_again() -> None:
    with pytest.raises(DataError, match="scheduled: XLA has optimized it before"):
        optimize(NEGATE.replace("HloModule m", "HloModule m, is_scheduled=true"), name="f.hlo")


def test_a_failed_check_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child dies as XLA does: it logs the check, and a signal ends it."""
    check = "F1122 18:01:38.778813     996 layout.cc:24] Check failed: rank == 2 (3 vs. 2) "
    child = f"import os, sys; sys.stderr.write({check!r}); sys.stderr.flush(); os.abort()"
    monkeypatch.setattr(optimizer, "_CHILD", child)
    with pytest.raises(DataError, match=r"XLA aborted: layout.cc:24\] Check failed: rank == 2 \(3 vs. 2\)"):
        optimize(NEGATE)


def test_a_crash_of_xla_is_not_a_missing_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a bitcast-convert to narrower elements, whose code XLA does not have."""
    monkeypatch.setattr(optimizer, "_CHILD", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(DataError, match=r"XLA crashed on this module \(signal 11\)"):
        optimize(NEGATE)


def test_another_death_of_the_child_is_a_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "_CHILD", "import sys; sys.exit('out of luck')")
    with pytest.raises(ToolError, match="out of luck"):
        optimize(NEGATE)


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "_CHILD", f"import sys; sys.modules['jaxlib'] = None; {optimizer._CHILD}")
    with pytest.raises(ToolError, match="the real XLA is not installed") as raised:
        optimize(NEGATE)
    assert "[xla,ptxas]" in raised.value.help


def test_an_unknown_target_is_refused_before_xla_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunningTool, "__init__", lambda *_: pytest.fail("started"))
    with pytest.raises(UsageError, match="unknown target 'b100'"):
        optimize(NEGATE, "b100")


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("--xla_gpu_enable_triton_gemm=false", ("xla_gpu_enable_triton_gemm", False)),
        ("xla_gpu_autotune_level=2", ("xla_gpu_autotune_level", "2")),
        ("xla_disable_hlo_passes=a,b", ("xla_disable_hlo_passes", "a,b")),
    ],
)
def test_flags_are_written_as_in_xla_flags(words: str, flag: tuple[str, bool | str]) -> None:
    assert parse_flag(words) == flag


@pytest.mark.parametrize("words", ["xla_gpu_autotune_level", "=3", ""])
def test_a_flag_without_name_or_value_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match="is not NAME=VALUE"):
        parse_flag(words)


def test_every_device_is_described() -> None:
    """The cost model of fusion reads clock and units; NVIDIA's data sheets give an H200 1.98 GHz and 128 FP32 units a multiprocessor."""
    for chip in DEVICES:
        info = parse_text_proto(description(chip), chip.name).child("gpu_device_info")
        assert info is not None
    text = description(device("h200"))
    assert "clock_rate_ghz: 1.98 " in text
    assert "fpus_per_core: 128 " in text


def test_a_device_has_a_toolkit_that_knows_its_accesses() -> None:
    """XLA gives a thread of Blackwell 32 bytes where it was built with CUDA 12.9 or newer; ptxas knows them from then on."""
    info = parse_text_proto(description(device("b200")), "b200").child("gpu_device_info")
    said = info.text("compile_time_toolkit_version")
    major, minor, _ = map(int, said.split("."))
    assert (major, minor) >= (12, 9)


def test_a_device_from_a_file_is_as_fast_as_the_one_before_it() -> None:
    """An L40S is of sm_89: an A6000, of sm_86, is the newest known device that is not newer."""
    path = Path(__file__).parents[3] / "examples" / "l40s.txtpb"
    assert "clock_rate_ghz: 1.8 " in description(device(str(path)))


def test_what_xla_prints_is_no_part_of_the_answer(tmp_path: Path) -> None:
    """XLA's own passes print to the process's stdout, not Python's, when they do not converge."""
    code = (
        "import os\nfrom xla_emitters.explore import real_xla\n"
        "class Loud:\n    def __init__(self, *given): pass\n    def compile(self, text, directory): os.write(1, b'failed to converge')\n"
        "real_xla.XlaGpu = Loud\nreal_xla.serve()\n"
    )
    request = {"work": "compile", "text": "", "target": "h200", "directory": str(tmp_path), "cuda": ""}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout), done.stderr) == ({}, "failed to converge")


def test_the_child_answers_when_the_passes_are_done(tmp_path: Path) -> None:
    """XLA dumps the module and the assignment of its buffers, in any order, then makes code, here for ten minutes."""
    module, buffers = (str(tmp_path / f"m.gpu_after_optimizations{end}.txt") for end in ("", "-buffer-assignment"))
    lines = ("HloModule m\n\nENTRY e {\n", "  ROOT x = f32[] parameter(0)\n", "}\n\n")
    code = f"""import time
from xla_emitters.explore import real_xla
def answer(request):
    with open({buffers!r}, "w"), open({module!r}, "w") as file:
        for line in {lines!r}:
            time.sleep(0.1)
            file.write(line)
            file.flush()
        time.sleep(600)
real_xla._answer = answer
real_xla.serve()"""
    request = {"work": "optimize", "text": "", "target": "h200", "directory": str(tmp_path), "flags": {}}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == {}
    assert Path(module).read_text().endswith("}\n\n")


def _failing(monkeypatch: pytest.MonkeyPatch, messages: list[str]) -> list[object]:
    """XLA that fails with these messages, then answers; the values of Triton's flag that it is given."""
    asked: list[object] = []

    def ask(request: dict[str, Any], text: str, name: str, toolchain: Toolchain) -> None:
        asked.append(request["flags"].get("xla_gpu_enable_triton_gemm"))
        if len(asked) <= len(messages):
            raise DataError(messages[len(asked) - 1], stage="xla")
        Path(request["directory"], "m.gpu_after_optimizations.txt").write_text(NEGATE)

    monkeypatch.setattr(optimizer, "ask_xla", ask)
    return asked


TILES = "XLA:GPU: Couldn't find output tile sizes that satisfy hlo: %dot.13"


def test_xla_is_asked_again_without_triton_where_it_fails_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    remarks: list[Remark] = []
    asked = _failing(monkeypatch, [TILES])
    assert optimize(NEGATE, remark=remarks.append) == NEGATE
    assert asked == [None, False]
    (remark,) = remarks
    assert "xla_gpu_enable_triton_gemm=false" in str(remark)
    assert TILES in str(remark)


def test_the_first_error_is_the_users_where_both_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch, [TILES, "XLA:GPU: something else"])
    with pytest.raises(DataError, match="output tile sizes") as raised:
        optimize(NEGATE)
    assert "xla_gpu_enable_triton_gemm" in (raised.value.help or "")


@pytest.mark.parametrize(
    ("message", "flags"),
    [
        (TILES, {"xla_gpu_enable_triton_gemm": True}),
        ("XLA cannot parse this HLO", {}),
    ],
)
def test_what_another_try_does_not_help_is_not_tried(
    message: str, flags: dict[str, Flag], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _failing(monkeypatch, [message])
    with pytest.raises(DataError, match=re.escape(message)):
        optimize(NEGATE, flags=flags)
    assert len(asked) == 1


REPLICAS = """module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 4 : i32} {
  func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %r = stablehlo.replica_id : tensor<ui32>
    %c = stablehlo.convert %r : (tensor<ui32>) -> tensor<f32>
    %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %s = stablehlo.add %a, %b : tensor<8xf32>
    return %s : tensor<8xf32>
  }
}
"""


def test_replicas_stay_several() -> None:
    """Else each would be the first: XLA makes the number of the only replica 0."""
    pytest.importorskip("jaxlib", reason="the extra [xla] is not installed")
    found = optimize(REPLICAS)
    assert "replica_count=4" in found.partition("\n")[0]
    assert "replica-id()" in found
