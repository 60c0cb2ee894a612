"""Programs with unknown sizes in a bundle: run at every shape by the script, in a process that has the files of the zip alone."""

import json
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from unit.runtime.bundle.test_bundle import manifest_of, plain_python, rewritten, with_manifest
from unit.runtime.fake_gpu import CORPUS, NO_SCALARS, fake_cupy, program_for_fake

from xla_emitters.explore.bundle_cases import bundle_program
from xla_emitters.runtime.bundle import bundle_main, bundle_programs
from xla_emitters.runtime.bundle.bundle import write_bundle

RUN = {"softmax": "fusions/softmax", "loop": "programs/given_trips", "ends early": "loops/ends_early"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "programs.zip"
    made = []
    texts = {name: (CORPUS / f"{file}.mlir").read_text() for name, file in RUN.items()} | {"window": NO_SCALARS}
    for name, text in texts.items():
        program = program_for_fake(text, record="none")
        sizes = [{symbol: first + i for i, symbol in enumerate(program.symbols)} for first in (1, 4)]
        made.append(bundle_program(program, text, sizes, name=name))
    write_bundle(path, [], made)
    return path


def test_every_shape_is_run_and_compared(bundle: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = plain_python(bundle, "--json", str(report), "--repeat", "1", cupy="fake")
    assert done.stderr == ""
    rows = json.loads(report.read_text())["rows"]
    assert done.returncode == 4  # the window
    assert [(row["case"], row["verdict"]) for row in rows] == [
        *((name, "ok") for name in RUN for _ in range(2)),
        ("window", "refused"),
        ("window", "refused"),
    ]
    assert {row["code"] for row in rows if row["case"] == "loop"} == {"b=1 s=2", "b=4 s=5"}
    assert "reduce_window" in rows[-1]["reason"]


def test_without_a_gpu_nothing_runs_and_the_reason_is_said(bundle: Path) -> None:
    done = plain_python(bundle)
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.startswith("not run: CuPy is not installed")
    assert done.stdout.count("not run") == 1 + 2 * len(RUN) + 2


def rows_of(path: Path, name: str) -> list[dict[str, Any]]:
    """What the script says of one program, in this process."""
    rows = [row for row in manifest_of(path)["programs"] if row["name"] == name]
    with fake_cupy() as cupy, zipfile.ZipFile(path) as archive:
        return bundle_programs.run_programs(cupy, archive, rows, 1)


@pytest.mark.parametrize("change", [{"steps": {}}, {"calls": [{}]}, {"places": [{"slot": 0}]}])
def test_steps_of_another_form_are_damage(
    change: dict[str, Any], bundle: Path, tmp_path: Path, cupy: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = manifest_of(bundle)
    manifest["programs"] = [row | change for row in manifest["programs"] if row["name"] == "loop"]
    broken = with_manifest(bundle, tmp_path / "b.zip", manifest)
    assert bundle_main.main(["--bundle", str(broken), "--repeat", "1"]) == 1
    assert "is damaged" in capsys.readouterr().err


def test_wrong_numbers_are_found(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        text = archive.read("softmax/kernels-32.ptx").decode()
    assert "div.full.f32" in text
    changed = {"softmax/kernels-32.ptx": text.replace("div.full.f32", "mul.rn.f32").encode()}
    assert rows_of(rewritten(bundle, tmp_path / "b.zip", changed), "softmax")[1]["verdict"] == "differs"


def test_a_missing_file_is_damage(bundle: Path, tmp_path: Path) -> None:
    done = plain_python(rewritten(bundle, tmp_path / "b.zip", {"loop/kernels-64.ptx": None}))
    assert done.returncode == 1
    assert "'loop/kernels-64.ptx' of program 'loop' is missing" in done.stderr


def test_another_constant_is_refused_by_its_digest(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle) as archive, archive.open("loop/constants.npz") as held, np.load(held) as entries:
        changed = {key: entries[key] ^ 1 for key in entries.files}
    np.savez(tmp_path / "c.npz", **changed)
    broken = rewritten(bundle, tmp_path / "b.zip", {"loop/constants.npz": (tmp_path / "c.npz").read_bytes()})
    assert "its data have the digest" in rows_of(broken, "loop")[0]["reason"]


def test_large_numbers_take_indices_of_64_bits(bundle: Path, tmp_path: Path) -> None:
    """As if 32 bits were enough for numbers up to 0 alone: the module of 64 bits is loaded, and gives the same.

    With n blocks of 32 rows and n columns, elements are counted up to 32 n n, which is below 2 ** 31 for n of 13 bits.
    """
    manifest = manifest_of(bundle)
    manifest["programs"] = [row for row in manifest["programs"] if row["name"] == "softmax"]
    (row,) = manifest["programs"]
    assert all(most >= 2**13 - 1 for most in row["narrow_up_to"].values())
    row["narrow_up_to"] = dict.fromkeys(row["narrow_up_to"], 0)
    wide = with_manifest(bundle, tmp_path / "wide.zip", manifest)
    assert [row["verdict"] for row in rows_of(wide, "softmax")] == ["ok", "ok"]
    empty = rewritten(wide, tmp_path / "empty.zip", {"softmax/kernels-32.ptx": b""})
    assert rows_of(empty, "softmax")[0]["verdict"] == "ok"
