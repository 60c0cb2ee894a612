"""Bundles: what is in one, `python kernels.zip` as users run it, and every way in which one can be damaged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from runtime.small_programs import PROGRAMS, TARGET
from unit.runtime.fake_gpu import FOLDER, fake_cupy, for_fake

from xla_emitters.explore.check import Reference, reference_for
from xla_emitters.fusions.program_plan import entry_of
from xla_emitters.pipelines.compiler import read_module
from xla_emitters.program import ArraySpec, Kernel, kernel_from_json
from xla_emitters.runtime import bundle_main, draws, packing
from xla_emitters.runtime.arrays import random_arrays
from xla_emitters.runtime.bundle import EDGE, POSITIONS, Case, positions_to_compare, write_bundle
from xla_emitters.runtime.inputs import draw_inputs, places_said_by
from xla_emitters.runtime.tolerance import Bounds


def case(name: str, rivals: tuple[tuple[str, tuple[Kernel, ...]], ...] = (), seed: int = 0) -> Case:
    """A case for the fake GPU: see `for_fake`."""
    program = for_fake(PROGRAMS[name], TARGET)
    inputs = random_arrays(program.parameters, seed)
    bounds = reference_for(read_module(PROGRAMS[name]), inputs).bounds
    return Case(name, program, program.hlo, seed, inputs, bounds, rivals)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "kernels.zip"
    write_bundle(path, [case(name) for name in PROGRAMS])
    return path


@pytest.fixture
def cupy() -> Iterator[ModuleType]:
    with fake_cupy() as module:
        yield module


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Calls the bundle's `main` in this process; returns (exit code, stdout, stderr)."""

    def call(path: Path, *options: str) -> tuple[int, str, str]:
        monkeypatch.syspath_prepend(str(path))
        forget()
        code = bundle_main.main(["--bundle", str(path), *options])
        out, err = capsys.readouterr()
        return code, out, err

    def forget() -> None:
        for name in ("draws", "packing"):
            sys.modules.pop(name, None)

    yield call
    forget()


def rewritten(path: Path, to: Path, changes: dict[str, bytes | None]) -> Path:
    """A copy of a zip, uncompressed, with entries replaced, or left out where the change is None."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(to, "w") as target:
        assert set(changes) <= set(source.namelist())
        for name in source.namelist():
            data = changes.get(name, source.read(name))
            if data is not None:
                target.writestr(name, data)
    return to


def manifest_of(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("manifest.json"))


def with_manifest(path: Path, to: Path, manifest: dict[str, Any]) -> Path:
    return rewritten(path, to, {"manifest.json": json.dumps(manifest).encode()})


def plain_python(path: Path, *options: str, cupy: str = "none") -> subprocess.CompletedProcess[str]:
    """`python kernels.zip` in a process of its own. `cupy`: "none", or "fake"."""
    blocked = path.parent / "no_cupy"
    blocked.mkdir(exist_ok=True)
    (blocked / "cupy.py").write_text("raise ImportError\n")
    environment = os.environ | {"PYTHONPATH": str(FOLDER if cupy == "fake" else blocked)}
    return subprocess.run(
        [sys.executable, str(path), *options], capture_output=True, text=True, env=environment, check=False
    )


def test_without_a_gpu_it_checks_and_says_not_run(bundle: Path, tmp_path: Path) -> None:
    """As users start it, with Python, NumPy and ml_dtypes only."""
    report = tmp_path / "report.json"
    done = plain_python(bundle, "--json", str(report))
    assert (done.returncode, done.stderr) == (0, "")
    headline, _, *rows = done.stdout.splitlines()
    assert headline == "not run: CuPy is not installed"
    assert [row.split()[:4] for row in rows] == [[name, "ours", "not", "run"] for name in PROGRAMS]
    data = json.loads(report.read_text())
    assert (data["device"], data["reason"]) == (None, "CuPy is not installed")
    assert [row["verdict"] for row in data["rows"]] == ["not run"] * len(PROGRAMS)


def test_on_a_gpu_everything_is_checked_and_timed(bundle: Path, tmp_path: Path) -> None:
    """In a process of its own, with the fake for CuPy: the whole path but the driver."""
    report = tmp_path / "report.json"
    done = plain_python(bundle, "--json", str(report), "--repeat", "2", cupy="fake")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith("Fake, driver 12080, CuPy 0-fake")
    rows = json.loads(report.read_text())["rows"]
    assert [(row["case"], row["verdict"], row["wrong"]) for row in rows] == [(name, "ok", 0) for name in PROGRAMS]
    # The fake's events say 0.25 ms; small GELU moves 2 x 81,920 bytes.
    assert [row["microseconds"] for row in rows] == [250.0] * len(PROGRAMS)
    assert rows[0]["gigabytes_per_second"] == pytest.approx(2 * 81_920 / 250e-6 / 1e9)


SCATTER = """
set { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
scattered { p = f32[6,8] parameter(0) rows = s32[4,1] parameter(1) u = f32[4,1,8] parameter(2)
  ROOT s = f32[6,8] scatter(p, rows, u), update_window_dims={1,2}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,
    unique_indices=true, to_apply=set }
ENTRY e { p = f32[6,8] parameter(0) rows = s32[4,1] parameter(1) u = f32[4,1,8] parameter(2)
  ROOT f = f32[6,8] fusion(p, rows, u), kind=kInput, calls=scattered }
"""


def test_numbers_that_say_where_a_scatter_writes_are_drawn_again(tmp_path: Path, run: Any) -> None:
    """As `check` draws them: different rows that there are. Redrawing compares their checksum."""
    entry, path = entry_of(read_module(SCATTER)), tmp_path / "scatter.zip"
    program = for_fake(SCATTER, TARGET)
    inputs = draw_inputs(entry, program.parameters, 0)
    made = Case("s", program, SCATTER, 0, inputs, Reference(entry, inputs).bounds, places=places_said_by(entry))
    write_bundle(path, [made])
    assert run(path)[0] == 0
    (spec,) = (spec for spec in manifest_of(path)["cases"][0]["parameters"] if spec["places"])
    assert spec["places"] == {"last": 5, "window": 1, "unique": True}
    rows = inputs[1].reshape(-1).tolist()
    assert len(set(rows)) == 4
    assert set(rows) <= set(range(6))


def test_a_python_without_packages_is_told_what_to_install(bundle: Path) -> None:
    done = subprocess.run([sys.executable, "-S", str(bundle)], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr == f"error: {sys.executable} has no ml_dtypes: pip install numpy ml_dtypes\n"


@pytest.mark.tiny
def test_it_imports_nothing_of_ours() -> None:
    for path in (bundle_main.__file__, draws.__file__, packing.__file__):
        assert "import xla_emitters" not in Path(path).read_text()
        assert "from xla_emitters" not in Path(path).read_text()


def test_a_wrong_kernel_differs(bundle: Path, tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """A constant changed in one kernel: that row differs, the others are right, the exit code is 3."""
    with zipfile.ZipFile(bundle) as archive:
        kernel = archive.read("bytes/ours-0.ptx").decode()
    assert kernel.count("constant(7 : i32)") == 1
    wrong = kernel.replace("constant(7 : i32)", "constant(8 : i32)").encode()
    code, out, _ = run(rewritten(bundle, tmp_path / "wrong.zip", {"bytes/ours-0.ptx": wrong}), "--repeat", "1")
    assert code == 3
    assert [row.split()[2] for row in out.splitlines()[2:]] == [
        "differs" if name == "bytes" else "ok" for name in PROGRAMS
    ]


def test_an_element_that_nobody_writes_differs(bundle: Path, tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """The last block left out: fresh memory holds a pattern that is no likely result."""
    manifest = manifest_of(bundle)
    kernel = next(c for c in manifest["cases"] if c["name"] == "ragged")["codes"][0]["kernels"][0]
    kernel["grid"][0] -= 1
    path = with_manifest(bundle, tmp_path / "short.zip", manifest)
    report = tmp_path / "report.json"
    code, _, _ = run(path, "--repeat", "1", "--json", str(report))
    assert code == 3
    (row,) = [row for row in json.loads(report.read_text())["rows"] if row["verdict"] == "differs"]
    assert (row["case"], row["wrong"]) == ("ragged", 41_000 % 512)


def test_a_rival_is_checked_and_timed_beside_ours(tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """Two codes for one case; one that the driver refuses costs its own row only."""
    ours = case("bytes").program.kernels
    refused = (replace(ours[0], ptx=".version 99.0"),)
    path = tmp_path / "rivals.zip"
    write_bundle(path, [case("bytes", rivals=(("xla", ours), ("newer", refused))), case("gelu")])
    code, out, _ = run(path, "--repeat", "1")
    assert code == 4
    assert [row.split()[:3] for row in out.splitlines()[2:]] == [
        ["bytes", "ours", "ok"],
        ["bytes", "xla", "ok"],
        ["bytes", "newer", "refused"],
        ["gelu", "ours", "ok"],
    ]
    assert "the driver rejects the PTX: CUDA_ERROR_INVALID_PTX" in out


def test_damaged_bundles(bundle: Path, tmp_path: Path, run: Any) -> None:
    """Each ends with exit code 1 and one line that says what is wrong."""
    broken = tmp_path / "broken.zip"

    def refused(message: str) -> None:
        code, out, err = run(broken)
        assert (code, out) == (1, "")
        assert message in err, err
        assert len(err.splitlines()) == 1

    broken.write_bytes(bundle.read_bytes()[:1000])
    refused("is not a bundle: File is not a zip file")
    broken.unlink()
    refused("is not a bundle")
    rewritten(bundle, broken, {"manifest.json": None})
    refused("is not a bundle")
    rewritten(bundle, broken, {"manifest.json": b"{"})
    refused("is not a bundle")
    rewritten(bundle, broken, {"gelu/ours-0.ptx": None})
    refused("'gelu/ours-0.ptx' of case 'gelu' is missing")
    rewritten(bundle, broken, {"gelu/expected.npz": None})
    refused("'gelu/expected.npz' of case 'gelu' is missing")
    with_manifest(bundle, broken, manifest_of(bundle) | {"format": 2})
    refused("its format is 2, but this script reads 3")
    with_manifest(bundle, broken, manifest_of(bundle) | {"cases": []})
    refused("it has no cases")
    with_manifest(bundle, broken, manifest_of(bundle) | {"cases": [{}]})
    refused("is not a bundle: 'codes'")


def test_a_changed_byte_is_noticed(bundle: Path, tmp_path: Path, run: Any) -> None:
    """Inside a stored entry: the zip's own checksum."""
    stored = rewritten(bundle, tmp_path / "stored.zip", {})
    data = bytearray(stored.read_bytes())
    at = data.index(b"llvm.func @fusion")
    data[at] ^= 1
    stored.write_bytes(data)
    code, _, err = run(stored)
    assert code == 1
    assert "ours-0.ptx' is damaged" in err


def test_inputs_that_are_not_those_of_the_reference(bundle: Path, tmp_path: Path, run: Any) -> None:
    """Another seed draws other arrays: their checksum tells, before anything is launched."""
    manifest = manifest_of(bundle)
    manifest["cases"][2]["seed"] += 1
    path = with_manifest(bundle, tmp_path / "drawn.zip", manifest)
    code, _, err = run(path)
    assert code == 1
    assert err.startswith("error: bytes: parameter 0 as drawn by this NumPy")


def test_a_truncated_file_as_python_sees_it(bundle: Path, tmp_path: Path) -> None:
    broken = tmp_path / "cut.zip"
    broken.write_bytes(bundle.read_bytes()[:-100])
    assert plain_python(broken).returncode == 1


@pytest.mark.parametrize("options", [("--repeat", "0"), ("--wrong",), ("--repeat", "many")])
def test_usage(options: tuple[str, ...], bundle: Path, run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(bundle, *options)
    assert stopped.value.code == 2


def test_a_report_that_cannot_be_written(bundle: Path, tmp_path: Path, run: Any) -> None:
    code, _, err = run(bundle, "--json", str(tmp_path))
    assert code == 2
    assert "cannot write" in err


# ---- writing ----------------------------------------------------------------------------------------------------------------------------


def test_which_positions_are_compared() -> None:
    """All of a result of up to 1 MiB; of a larger one 65,536, the first and last 4,096 among them, the same ones every time."""
    small = ArraySpec("f32", (1 << 18,), (0,))
    assert np.array_equal(positions_to_compare(small, 0), np.arange(1 << 18))
    large = ArraySpec("bf16", (6, 512, 4096), (2, 1, 0))
    positions = positions_to_compare(large, 0)
    assert len(positions) <= POSITIONS
    assert len(positions) > POSITIONS * 0.99
    assert np.array_equal(positions[:EDGE], np.arange(EDGE))
    assert np.array_equal(positions[-EDGE:], np.arange(large.elements - EDGE, large.elements))
    assert (np.diff(positions) > 0).all()
    assert np.array_equal(positions, positions_to_compare(large, 0))
    assert not np.array_equal(positions, positions_to_compare(large, 1))


def test_names_are_made_unique(tmp_path: Path) -> None:
    path = tmp_path / "twice.zip"
    write_bundle(path, [case("bytes"), case("bytes", seed=1)])
    assert [c["name"] for c in manifest_of(path)["cases"]] == ["bytes", "bytes-2"]


NARROW = """
f { a = s4[5,7]{0,1} parameter(0) b = u4[5,7] parameter(1) c = s2[5,7] parameter(2) d = u2[5,7]{0,1} parameter(3)
  e = f4e2m1fn[5,7] parameter(4) s = s1[5,7] parameter(5)
  na = s4[5,7]{1,0} not(a) nb = u4[5,7]{0,1} not(b) nc = s2[5,7] not(c) nd = u2[5,7] not(d) ne = f4e2m1fn[5,7] negate(e)
  w = s8[5,7] convert(s)
  ROOT t = (s4[5,7]{1,0}, u4[5,7]{0,1}, s2[5,7], u2[5,7], f4e2m1fn[5,7], s8[5,7]) tuple(na, nb, nc, nd, ne, w) }
"""


def test_elements_that_share_a_byte(tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """35 of them end in the middle of one; layouts differ. s1, which has a byte of its own, is drawn from its two numbers."""
    program = for_fake(NARROW, TARGET)
    inputs = random_arrays(program.parameters, 0)
    first, *others = reference_for(read_module(NARROW), inputs).bounds
    changed = first.low.copy()
    changed[2, 3] = ~changed[2, 3].astype(np.int8)
    path, report = tmp_path / "narrow.zip", tmp_path / "report.json"
    write_bundle(path, [Case("narrow", program, NARROW, 0, inputs, [Bounds(changed, changed), *others])])
    (entry,) = manifest_of(path)["cases"]
    assert [spec["packed"] for spec in (*entry["parameters"], *entry["results"])] == [*[True] * 5, False] * 2
    (kernel,) = entry["codes"][0]["kernels"]
    assert [argument["bytes"] for argument in kernel["arguments"]] == [18, 18, 9, 9, 18, 35] * 2
    # One expected element of the 210 is wrong, and one is said to differ.
    assert run(path, "--repeat", "1", "--json", str(report))[0] == 3
    (row,) = json.loads(report.read_text())["rows"]
    assert (row["verdict"], row["wrong"]) == ("differs", 1)


def test_kernels_in_the_manifest_are_those_of_the_program(bundle: Path) -> None:
    made = case("two_results").program.kernels
    with zipfile.ZipFile(bundle) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        entry = next(c for c in manifest["cases"] if c["name"] == "two_results")
        (code,) = entry["codes"]
        stored = [kernel_from_json(k, archive.read(k["ptx"]).decode()) for k in code["kernels"]]
        assert archive.read(entry["hlo"]).decode() == case("two_results").hlo
    assert tuple(stored) == made
