"""Directories as inputs: of the files that XLA writes for a module, the last one is taken."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from in_process import called, messages, printed

from xla_emitters.errors import DataError
from xla_emitters.tools.dump_directory import modules_in
from xla_emitters.tools.main import main

MODULE = "HloModule m, is_scheduled=true\nENTRY e {\n  a = f32[8] parameter(0)\n  ROOT n = f32[8] negate(a)\n}\n"
GPU = "module_0001.jit_f.sm_9.0a_gpu_after_optimizations"


def made(directory: Path, *names: str, text: str = MODULE) -> Path:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory


NOISE = (
    *(f"{GPU}-buffer-assignment.txt", f"{GPU}-memory-usage-report.txt", "module_0001.jit_f.before_optimizations.txt"),
    *(
        "module_0001.jit_f.0013.simplification.after_pipeline-start.before_algsimp.txt",
        "module_0001.jit_f.debug_options",
    ),
    *("module_0001.jit_f.thunk_sequence.txt", "module_0001.jit_f/module.mlir", "module_0001.jit_f/compile_options.pb"),
    *("module_0001.jit_f.sm_9.0a_gpu_after_optimizations-memory-usage-report.pb", "notes.txt"),
)


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ([f"{GPU}.txt"], [f"{GPU}.txt"]),
        ([f"{GPU}.hlo.pb"], [f"{GPU}.hlo.pb"]),
        ([f"{GPU}.txt", f"{GPU}.hlo.pb"], [f"{GPU}.txt"]),
        (["module_0001.jit_f.snapshot.-112.pb", f"{GPU}.txt"], [f"{GPU}.txt"]),
        (["module_0001.jit_f.snapshot.-112.pb"], ["module_0001.jit_f.snapshot.-112.pb"]),
        ([f"{GPU}.txt", f"{GPU.replace('0001', '0002')}.txt"], [f"{GPU}.txt", f"{GPU.replace('0001', '0002')}.txt"]),
        ([f"{GPU}.txt", "a.hlo", "b.mlir"], ["a.hlo", f"{GPU}.txt"]),
    ],
)
def test_the_module_after_optimizations_is_taken(names: list[str], taken: list[str], tmp_path: Path) -> None:
    assert [path.name for path in modules_in(str(made(tmp_path, *names, *NOISE)))] == taken


def test_a_text_without_its_constants_gives_way_to_the_proto(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path, f"{GPU}.hlo.pb")
    made(tmp_path, f"{GPU}.txt", text=MODULE.replace("negate(a)", "constant({...})"))
    assert [path.name for path in modules_in(str(tmp_path))] == [f"{GPU}.hlo.pb"]
    assert f"note: {tmp_path / GPU}.hlo.pb is taken of the 2 files that XLA wrote" in capsys.readouterr().err


def test_stablehlo_is_taken_where_there_is_nothing_else(tmp_path: Path) -> None:
    assert [path.name for path in modules_in(str(made(tmp_path, "b.mlir", "a.mlir")))] == ["a.mlir", "b.mlir"]
    assert [path.name for path in modules_in(str(made(tmp_path, "c.hlo")))] == ["c.hlo"]


def test_a_dump_of_another_pass_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as found:
        modules_in(str(made(tmp_path, "module_0001.jit_f.before_optimizations.txt")))
    assert "module_0001.jit_f.before_optimizations.txt is of another pass" in found.value.help
    assert f"--xla_dump_to={tmp_path}" in found.value.help


def test_list_goes_through_a_directory(tmp_path: Path) -> None:
    made(tmp_path, "a.hlo", f"{GPU}.txt")
    made(tmp_path, "b.hlo", text="HloModule broken\nENTRY {")
    code, out, err = called("list", tmp_path)
    assert code == 1
    assert out.count("1 fusion, 0 library calls") == 2
    assert "b.hlo:2:7: error: [hlo.parse]" in err
    (tmp_path / "b.hlo").unlink()
    files = json.loads(printed("list", tmp_path, "--json"))["files"]
    assert [Path(row["file"]).name for row in files] == ["a.hlo", f"{GPU}.txt"]
    assert all(row["kernels"] for row in files)


def test_what_xla_dumps_is_listed_and_checked(tmp_path: Path) -> None:
    """A dump of JAX's own on the CPU: text, protos, and a module whose constants only the proto has."""
    pytest.importorskip("jax", reason="the extra [jax] is not installed")
    code = (
        "import jax, numpy as np; c = np.arange(40., dtype='f');"
        " jax.jit(lambda x: x * c * c[::-1] + np.sin(c))(c); jax.jit(lambda x: x @ x)(np.ones((4, 4), 'f'))"
    )
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_text --xla_dump_hlo_as_proto"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, timeout=300)
    code, out, err = called("check", tmp_path, "--stages", "hlo,flat")
    assert code == 0
    assert "2 of 2 files ok, 0 failed" in out
    assert "cpu_after_optimizations.hlo.pb  ok" in out
    assert "is taken of the" in err


def test_a_snapshot_that_jax_wrote_gives_jaxs_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """XLA writes the module before its passes with the arguments of the call; both kinds of snapshots."""
    pytest.importorskip("jax", reason="the extra [jax] is not installed")
    code = (
        "import sys, jax, numpy as np; x = np.cos(np.arange(12., dtype='f')).reshape(3, 4);"
        " np.save(sys.argv[1], jax.jit(lambda x, y: jax.nn.softmax(x @ y.T) - 1)(x, x[::-1]))"
    )
    for number, kind in enumerate(("snapshots", "unoptimized_snapshots")):
        folder, right = tmp_path / kind, tmp_path / f"{number}.npy"
        flags = f"--xla_dump_to={folder} --xla_dump_hlo_{kind}"
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags}
        words = [sys.executable, "-c", code, str(right)]
        subprocess.run(words, check=True, env=environment, capture_output=True, timeout=300)
        paths = [path for path in modules_in(str(folder)) if "lambda" in path.name]
        assert len(paths) == 1, paths
        out = tmp_path / "out.npz"
        assert main(["run", str(paths[0]), "--platform", "cpu", "--outputs", str(out)]) == 0
        np.testing.assert_allclose(np.load(out)["r0"], np.load(right), rtol=1e-5)
    assert "random" not in capsys.readouterr().out


def test_a_snapshot_as_text_is_named(tmp_path: Path) -> None:
    made(tmp_path, "a.txt", text='hlo_module {\n  name: "jit_f"\n  entry_computation_name: "main"\n}\n')
    err = messages(1, "list", tmp_path / "a.txt")
    assert "a.txt:1:1: error: [hlo.parse] this is a proto as text, as XLA writes snapshots" in err
