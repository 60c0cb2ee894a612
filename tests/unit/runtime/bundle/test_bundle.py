"""Bundles: what is in one, `python kernels.zip` as users run it, and every way in which one can be damaged."""

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from runtime.modules import MODULES
from runtime.small_programs import PROGRAMS, TARGET
from unit.runtime.fake_gpu import FOLDER, for_fake

from xla_emitters.errors import UsageError
from xla_emitters.explore.check.verdict import Reference, reference_for
from xla_emitters.graph.entry import entry_of
from xla_emitters.library.convolution import NO_CUDNN
from xla_emitters.pipelines.compiler import read_module
from xla_emitters.program import ArraySpec, Kernel
from xla_emitters.runtime.arrays import random_arrays
from xla_emitters.runtime.bundle import bundle_main
from xla_emitters.runtime.bundle.bundle import EDGE, FILES, POSITIONS, Case, positions_to_compare, write_bundle
from xla_emitters.runtime.inputs import allowed_starts, draw_inputs
from xla_emitters.runtime.reference.tolerance import Bounds


@cache
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


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of one case."""
    path = tmp_path_factory.mktemp("bundle") / "bytes.zip"
    write_bundle(path, [case("bytes")])
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Calls the bundle's `main` in this process; returns (exit code, stdout, stderr)."""

    def call(path: Path, *options: str) -> tuple[int, str, str]:
        code = bundle_main.main(["--bundle", str(path), *options])
        out, err = capsys.readouterr()
        return code, out, err

    return call


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
    assert (done.returncode, done.stderr) == (4, "")
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


# ---- whole modules ----------------------------------------------------------------------------------------------------------------------

WHOLE = {
    "search_sorted": "a sort, then a loop",
    "fori_power_iteration": "a product of matrices in a loop",
    "conv_depthwise": "products of patches",
}
SORT_S4 = """HloModule sort_s4
less {
  a = s4[] parameter(0)
  b = s4[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}
ENTRY e {
  p = s4[8] parameter(0)
  ROOT s = s4[8] sort(p), dimensions={0}, to_apply=less
}
"""
"""What no GPU runs: a library has no elements below eight bits."""


@cache
def module_case(path: Path) -> Case:
    """A module of the corpus, compiled for the fake GPU."""
    entry, program = entry_of(read_module(path)), for_fake(path, "h200")
    inputs = draw_inputs(entry, program.parameters, 0)
    bounds = Reference(entry, inputs).bounds
    return Case(path.stem, program, program.hlo, 0, inputs, bounds, places=allowed_starts(entry))


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    refused = folder / "sort_s4.hlo"
    refused.write_text(SORT_S4)
    files = [*(MODULES / f"{name}.hlo" for name in WHOLE), refused]
    write_bundle(folder / "modules.zip", [module_case(file) for file in files])
    return folder / "modules.zip"


def test_loops_and_library_calls_run_in_the_script(modules: Path, tmp_path: Path) -> None:
    """In a process of its own, with the files in the zip; their bounds are those of HLO's reference."""
    report = tmp_path / "report.json"
    done = plain_python(modules, "--json", str(report), "--repeat", "1", cupy="fake")
    assert done.returncode == 4
    assert done.stderr.count(NO_CUDNN) == 1
    *whole, refused = json.loads(report.read_text())["rows"]
    assert [(row["case"], row["verdict"], row["wrong"]) for row in whole] == [(name, "ok", 0) for name in WHOLE]
    # HLO says how many trips the loops have, so the host reads no predicate.
    assert [row["timed"] for row in whole] == ["events"] * len(whole)
    assert (refused["case"], refused["verdict"]) == ("sort_s4", "refused")
    assert refused["reason"].startswith("no library function for s4 on a GPU")


def test_modules_without_a_gpu(modules: Path) -> None:
    """One that a GPU would refuse says so even here."""
    done = plain_python(modules)
    assert (done.returncode, done.stderr) == (4, "")
    rows = done.stdout.splitlines()[2:]
    assert [row.split()[:4] for row in rows] == [[name, "ours", "not", "run"] for name in (*WHOLE, "sort_s4")]
    assert "refused on a GPU: no library function for s4" in rows[-1]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("search_sorted", {"descending": True}),
        ("fori_power_iteration", {"alpha": [2, 0]}),
    ],
)
def test_another_configuration_of_a_call_differs(
    name: str, change: dict[str, Any], modules: Path, tmp_path: Path, run: Any, cupy: ModuleType
) -> None:
    """A sort the other way around; a product of twice the factor."""

    manifest = manifest_of(modules)
    (case,) = manifest["cases"] = [case for case in manifest["cases"] if case["name"] == name]
    for call in case["calls"]:
        for holder in (call["config"], *(call["config"].get("keys") or [])):
            holder.update({key: value for key, value in change.items() if key in holder})
    path = with_manifest(modules, tmp_path / "other.zip", manifest)
    code, out, _ = run(path, "--repeat", "1")
    assert code == 3
    assert [row.split()[2] for row in out.splitlines()[2:]] == ["differs"]


def test_a_loop_that_does_not_end(modules: Path, tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """Its body does nothing, and nothing says how many trips it has: the row says so, and the next case runs."""

    manifest = manifest_of(modules)
    for step in next(c for c in manifest["cases"] if c["name"] == "search_sorted")["codes"][0]["steps"]:
        if step["step"] == "Loop":
            step["body"], step["trips"] = [], None
    path = with_manifest(modules, tmp_path / "endless.zip", manifest)
    _, out, _ = run(path, "--repeat", "1", "--max-iterations", "20")
    first, second, *_ = out.splitlines()[2:]
    assert "differs" in first
    assert "loop %while.16 does not end within 20 iterations" in first
    assert second.split()[2] == "ok"


def test_what_the_machine_cannot_hold_or_stops_with(
    small: Path, run: Any, cupy: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory and the driver: one row each, no traceback."""

    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError("8 bytes are expected")

    with monkeypatch.context() as patched:
        patched.setattr(cupy, "empty", no_memory)
        code, out, _ = run(small, "--repeat", "1")
    assert (code, out.count("refused"), out.count("out of memory")) == (4, 1, 1)

    with monkeypatch.context() as patched:
        patched.setattr(bundle_main, "by_events", no_memory)
        code, out, _ = run(small, "--repeat", "1")
    assert (code, out.count("not timed, out of memory: 8 bytes are expected")) == (0, 1)

    def stops(*_: object) -> None:
        raise cupy.CUDADriverError("CUDA_ERROR_ILLEGAL_ADDRESS")

    monkeypatch.setattr(bundle_main.FlatCupyPlatform, "launch", stops)
    code, out, _ = run(small, "--repeat", "1")
    assert (code, out.count("it stops with: CUDA_ERROR_ILLEGAL_ADDRESS")) == (3, 1)


def test_timed_runs_allocate_nothing(tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """A temporary keeps the memory that it got when a set of buffers was first used."""
    path, counts = tmp_path / "loop.zip", []
    write_bundle(path, [module_case(MODULES / "fori_power_iteration.hlo")])
    for repeat in ("1", "2"):
        cupy.allocations.clear()
        assert run(path, "--repeat", repeat)[0] == 0
        counts.append(len(cupy.allocations))
    assert counts[0] == counts[1] > 0


def test_timed_updates_in_place_copy_nothing(tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """A donated parameter is the kernel's to overwrite."""
    text = COMPARE.replace("pred", "f32").replace("compare(%x, %x), direction=EQ", "add(%x, %x)")
    name, newline, rest = text.lstrip().partition("\n")
    text = f"{name}, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}{newline}{rest}"
    program, path, counts = for_fake(text, TARGET), tmp_path / "in_place.zip", []
    inputs = random_arrays(program.parameters, 0)
    bounds = reference_for(read_module(text), inputs).bounds
    write_bundle(path, [Case("c", program, text, 0, inputs, bounds)])
    for repeat in ("1", "4"):
        cupy.copies.clear()
        assert run(path, "--repeat", repeat)[0] == 0
        counts.append(len(cupy.copies))
    assert counts[0] == counts[1]


def test_rivals_are_of_kernels_alone(tmp_path: Path) -> None:
    ours = module_case(MODULES / "search_sorted.hlo")
    with pytest.raises(UsageError, match="search_sorted is more than kernels: it has no rivals"):
        write_bundle(tmp_path / "rivals.zip", [replace(ours, rivals=(("xla", ours.program.kernels),))])


COMPARE = """
HloModule compared
f { %x = f32[1000] parameter(0) ROOT %p = pred[1000] compare(%x, %x), direction=EQ }
ENTRY main { %x = f32[1000] parameter(0) ROOT %fusion = pred[1000] fusion(%x), kind=kLoop, calls=f }
"""


@pytest.mark.parametrize("direction", ["EQ", "NE"])
def test_a_pred_that_nothing_writes_differs(direction: str, tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """All are true, and so would NumPy say of the pattern in fresh memory; or all are false."""
    text = COMPARE.replace("EQ", direction)
    program, path = for_fake(text, TARGET), tmp_path / "compare.zip"
    inputs = random_arrays(program.parameters, 0)
    write_bundle(path, [Case("c", program, text, 0, inputs, reference_for(read_module(text), inputs).bounds)])
    assert run(path, "--repeat", "1")[0] == 0
    manifest = manifest_of(path)
    manifest["cases"][0]["codes"][0]["steps"] = []
    assert run(with_manifest(path, tmp_path / "empty.zip", manifest), "--repeat", "1")[0] == 3


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
    made = Case("s", program, SCATTER, 0, inputs, Reference(entry, inputs).bounds, places=allowed_starts(entry))
    write_bundle(path, [made])
    assert run(path)[0] == 4, "drawn, not run"
    (spec,) = (spec for spec in manifest_of(path)["cases"][0]["parameters"] if spec["places"])
    assert spec["places"] == {"last": 5, "window": 1, "unique": True, "least": None}
    rows = inputs[1].reshape(-1).tolist()
    assert len(set(rows)) == 4
    assert set(rows) <= set(range(6))


def test_a_python_without_packages_is_told_what_to_install(bundle: Path) -> None:
    done = subprocess.run([sys.executable, "-S", str(bundle)], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr == f"error: {sys.executable} has no ml_dtypes: pip install numpy ml_dtypes\n"


def test_it_holds_what_it_imports(tmp_path: Path) -> None:
    """Every file of ours can be imported from the zip, and brings nothing along but NumPy and ml_dtypes."""
    path = tmp_path / "empty.zip"
    write_bundle(path, [])
    names = [f"xla_emitters.{name.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__") for name in FILES]
    code = f"""
import importlib, sys
sys.path.insert(0, {str(path)!r})
for name in {names}: importlib.import_module(name)
print(*(name for name, module in sys.modules.items()
        if name.startswith("xla_emitters") and not str(module.__file__).startswith({str(path)!r})))
print(*({{name.partition(".")[0] for name in sys.modules}} & {{"xdsl", "platformdirs", "jax", "cupy"}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")


def test_a_wrong_kernel_differs(bundle: Path, tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """A constant changed in one kernel: that row differs, the others are right, the exit code is 3."""
    with zipfile.ZipFile(bundle) as archive:
        kernel = archive.read("bytes/ours-0.ptx").decode()
    assert kernel.count("%rs2, 6, %rs1") == 1
    wrong = kernel.replace("%rs2, 6, %rs1", "%rs2, 7, %rs1").encode()
    code, out, _ = run(rewritten(bundle, tmp_path / "wrong.zip", {"bytes/ours-0.ptx": wrong}), "--repeat", "1")
    assert code == 3
    assert [row.split()[2] for row in out.splitlines()[2:]] == [
        "differs" if name == "bytes" else "ok" for name in PROGRAMS
    ]


def test_an_element_that_nobody_writes_differs(bundle: Path, tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """The last block left out: fresh memory holds a pattern that is an unlikely result."""
    manifest = manifest_of(bundle)
    launch = next(c for c in manifest["cases"] if c["name"] == "ragged")["codes"][0]["steps"][0]
    launch["grid"][0] -= 1
    path = with_manifest(bundle, tmp_path / "short.zip", manifest)
    report = tmp_path / "report.json"
    code, _, _ = run(path, "--repeat", "1", "--json", str(report))
    assert code == 3
    (row,) = [row for row in json.loads(report.read_text())["rows"] if row["verdict"] == "differs"]
    assert (row["case"], row["wrong"]) == ("ragged", 41_000 % 512)


def test_a_rival_is_checked_and_timed_beside_ours(tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """Two codes for one case; one that the driver refuses costs its own row only."""
    ours = case("bytes").program.kernels
    refused = (replace(ours[0], ptx=".version 99.0 .entry"),)
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
    assert "the driver rejects the PTX of fusion for sm_75: CUDA_ERROR_INVALID_PTX" in out


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
    with_manifest(bundle, broken, manifest_of(bundle) | {"format": 3})
    refused("its format is 3, but this script reads 6; make it again with 'xla-emitters bundle'")
    with_manifest(bundle, broken, manifest_of(bundle) | {"cases": []})
    refused("it has no cases")
    with_manifest(bundle, broken, manifest_of(bundle) | {"cases": [{}]})
    refused("is not a bundle: 'codes'")
    manifest = manifest_of(bundle)
    manifest["cases"][0]["codes"][0]["steps"] = [{"step": "jump"}]
    with_manifest(bundle, broken, manifest)
    refused("is not a bundle: no step is called 'jump'")
    one = {"grid": [1, 1, 1], "block": [1, 1, 1], "shared_bytes": 0, "arguments": []}
    manifest["cases"][0]["codes"][0]["steps"] = [{"step": "Launch", "kernel": "seven", **one}]
    with_manifest(bundle, broken, manifest)
    refused("is not a bundle: no kernel is called 'seven'")


def test_a_changed_byte_is_noticed(bundle: Path, tmp_path: Path, run: Any) -> None:
    """Inside a stored entry: the zip's own checksum."""
    stored = rewritten(bundle, tmp_path / "stored.zip", {})
    data = bytearray(stored.read_bytes())
    at = data.index(b".visible .entry fusion")
    data[at] ^= 1
    stored.write_bytes(data)
    code, _, err = run(stored)
    assert code == 1
    assert "ours-0.ptx' is damaged" in err


def test_inputs_that_are_not_those_of_the_reference(bundle: Path, tmp_path: Path, run: Any) -> None:
    """Another seed draws other arrays: their checksum shows it before anything is launched."""
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


@pytest.mark.parametrize("options", [("--repeat", "0"), ("--max-iterations", "-1"), ("--wrong",), ("--repeat", "many")])
def test_usage(options: tuple[str, ...], bundle: Path, run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(bundle, *options)
    assert stopped.value.code == 2


def test_a_report_that_cannot_be_written(bundle: Path, tmp_path: Path, run: Any) -> None:
    code, _, err = run(bundle, "--json", str(tmp_path))
    assert code == 2
    assert "cannot write" in err


# ---- writing ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.tiny
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
    (kernel,) = entry["codes"][0]["kernels"]
    assert [argument["bytes"] for argument in kernel["arguments"]] == [18, 18, 9, 9, 18, 35] * 2
    # One expected element of the 210 is wrong, and one is said to differ.
    assert run(path, "--repeat", "1", "--json", str(report))[0] == 3
    (row,) = json.loads(report.read_text())["rows"]
    assert (row["verdict"], row["wrong"]) == ("differs", 1)


def test_what_the_script_reads_is_the_program(modules: Path) -> None:
    """Its steps, with the kernels inside loops and their one PTX; and the HLO text."""
    made = module_case(MODULES / "search_sorted.hlo").program
    with zipfile.ZipFile(modules) as archive:
        entry = next(c for c in manifest_of(modules)["cases"] if c["name"] == "search_sorted")
        case = bundle_main.read_case(archive, entry)
        assert archive.read(entry["hlo"]).decode() == made.hlo
        assert {kernel["ptx"] for kernel in entry["codes"][0]["kernels"]} == {"search_sorted/ours-0.ptx"}
    assert [code.steps for code in case.codes] == [made.steps]
    assert case.arrays == made.arrays


def test_what_the_host_reads_is_counted(modules: Path, tmp_path: Path, run: Any, cupy: ModuleType) -> None:
    """The predicate before each of a loop's 4 iterations, and once more, where nothing says that there are 4."""
    manifest, report = manifest_of(modules), tmp_path / "report.json"
    manifest["cases"] = [case for case in manifest["cases"] if case["name"] == "search_sorted"]
    for step in manifest["cases"][0]["codes"][0]["steps"]:
        if step["step"] == "Loop":
            step["trips"] = None
    path = with_manifest(modules, tmp_path / "unknown.zip", manifest)
    assert run(path, "--repeat", "1", "--json", str(report))[0] == 0
    assert [row["timed"] for row in json.loads(report.read_text())["rows"]] == ["end to end, 5 reads by the host"]
