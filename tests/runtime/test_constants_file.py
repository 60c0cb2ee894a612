"""The constants of a program in a file beside it: read when a run needs them, checked by digest; a file that is wrong is named."""

from pathlib import Path

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import DataError, UsageError
from xla_emitters.program import Program
from xla_emitters.tools.main import main

TEXT = """
module @scaled {
  func.func public @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %w = stablehlo.constant dense<[[1.0, 2.0, 4.0], [8.0, 16.0, 32.0], [64.0, 128.0, 256.0]]> : tensor<3x3xf32>
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x3xf32>, tensor<3x3xf32>) -> tensor<?x3xf32>
    return %y : tensor<?x3xf32>
  }
}
""".lstrip()
W = np.asarray([[1, 2, 4], [8, 16, 32], [64, 128, 256]], np.float32)
X = np.asarray([[1, 0, 1], [0, 1, 0]], np.float32)


def compiled(folder: Path) -> tuple[Program, Path]:
    path = folder / "scaled.npz"
    program = xe.compile(TEXT, constants=str(path))
    assert isinstance(program, Program)
    return program, path


def test_a_run_reads_it_when_it_needs_it_and_once(tmp_path: Path) -> None:
    program, path = compiled(tmp_path)
    np.testing.assert_array_equal(program(X), X @ W)
    path.unlink()
    np.testing.assert_array_equal(program(2 * X), 2 * X @ W)


def test_it_holds_bytes_under_the_names_that_the_program_says(tmp_path: Path) -> None:
    _, path = compiled(tmp_path)
    with np.load(path, allow_pickle=False) as archive:
        (name,) = archive.files
        assert archive[name].tobytes() == W.tobytes()
    assert name.endswith("_f32_3x3")


def test_a_missing_file_is_named_with_the_constant(tmp_path: Path) -> None:
    program, path = compiled(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match=rf"constant '\w+_f32_3x3': {path} cannot be read: No such file"):
        program(X)


def test_another_program_s_file_and_changed_data_are_named(tmp_path: Path) -> None:
    program, path = compiled(tmp_path)
    with np.load(path) as archive:
        (name,) = archive.files
    np.savez(path, other=np.zeros(36, np.uint8))
    with pytest.raises(DataError, match=f"constant '{name}': {path} has no such entry"):
        program(X)
    np.savez(path, allow_pickle=False, **{name: np.frombuffer((W + 1).tobytes(), np.uint8)})
    with pytest.raises(DataError, match=f"constant '{name}': its data have the digest"):
        program(X)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match=str(path)):
        program(X)


def test_a_damaged_byte_is_found(tmp_path: Path) -> None:
    """For every byte of the data: no run computes with a changed constant."""
    program, path = compiled(tmp_path)
    whole = path.read_bytes()
    start = whole.index(W.tobytes())
    for at in range(start, start + W.nbytes, 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(DataError, match=r"constant '|CRC"):
            program(X)


def test_the_command_line_writes_it_beside_the_host_program(tmp_path: Path) -> None:
    (tmp_path / "scaled.mlir").write_text(TEXT)
    assert main(["compile", str(tmp_path / "scaled.mlir"), "--stage", "host", "-o", f"{tmp_path}/out/"]) == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["scaled.mlir", "scaled.npz"]
    printed = (tmp_path / "out" / "scaled.mlir").read_text()
    assert "func.func @main(%ctx: !disc_ral.context)" in printed
    with np.load(tmp_path / "out" / "scaled.npz") as archive:
        assert f'config "{archive.files[0]}"' in printed


def test_a_folder_that_cannot_be_written_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scaled.mlir").write_text(TEXT)
    (tmp_path / "file").write_text("")
    assert main(["compile", str(tmp_path / "scaled.mlir"), "--stage", "host", "-o", f"{tmp_path}/file/"]) == 2
    assert "cannot write to" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"cannot write .*none/c.npz: No such file"):
        xe.compile(TEXT, constants=str(tmp_path / "none" / "c.npz"))


def test_a_module_of_kernels_has_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="constants are written for programs"):
        xe.compile("HloModule m\nENTRY e { ROOT p = f32[2] parameter(0) }\n", constants=str(tmp_path / "c.npz"))
