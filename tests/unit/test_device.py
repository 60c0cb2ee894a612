"""Devices: found by model and by architecture, with the numbers that the vendor gives."""

import re
from pathlib import Path

import pytest

from xla_emitters.device import DEFAULT_DEVICE, DEVICES, device, device_running
from xla_emitters.errors import ParseError, Unsupported, UsageError


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("architecture", "model"),
    [("sm_75", "t4"), ("sm_80", "a100"), ("sm_86", "a6000"), ("sm_90", "h200"), ("sm_100", "b200")],
)
def test_an_architecture_stands_for_a_model(architecture: str, model: str) -> None:
    assert device(architecture).name == model
    assert device(architecture) is device(model) is device(model.upper())


def test_the_default_is_there() -> None:
    assert device(DEFAULT_DEVICE).name == "h200"
    assert device("h100").architecture == device("h200").architecture == "sm_90"


def test_unknown_target() -> None:
    with pytest.raises(UsageError, match="unknown target 'gtx1080'") as raised:
        device("gtx1080")
    assert "sm_90" in raised.value.help
    assert "a6000" in raised.value.help
    assert raised.value.exit_code == 2
    with pytest.raises(UsageError) as raised:
        device("sm_9990")
    assert raised.value.help.startswith("did you mean 'sm_90'")


@pytest.mark.parametrize(
    ("name", "cores", "threads"),
    # NVIDIA's data sheets: streaming multiprocessors, and the resident threads of all of them.
    [
        ("t4", 40, 40_960),
        ("a100", 108, 221_184),
        ("a6000", 84, 129_024),
        ("h200", 132, 270_336),
        ("b200", 148, 303_104),
    ],
)
def test_resident_threads(name: str, cores: int, threads: int) -> None:
    assert (device(name).cores, device(name).threads_max) == (cores, threads)


def test_compute_capability() -> None:
    assert [device(name).compute_capability for name in ("t4", "a6000", "h200", "b200")] == [
        (7, 5),
        (8, 6),
        (9, 0),
        (10, 0),
    ]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ("sm_75", "t4"),
        ("sm_87", "a6000"),
        ("sm_89", "a6000"),
        ("sm_90", "h200"),
        ("sm_103", "b200"),
        ("sm_120", "b200"),
    ],
)
def test_a_gpu_runs_what_was_made_for_an_older_one(found: str, wanted: str) -> None:
    assert device_running(found).name == wanted


def test_a_gpu_that_is_older_than_all() -> None:
    with pytest.raises(UsageError, match="no kernels for sm_70"):
        device_running("sm_70")


def test_what_every_block_may_hold() -> None:
    """CUDA's limits, the same for all of these."""
    for chip in DEVICES:
        assert (chip.threads_per_warp, chip.threads_per_block_max, chip.shared_bytes_per_block) == (32, 1024, 49152)
        assert (chip.grid_max_x, chip.grid_max_y) == (2147483647, 65535)


# ---- described by a file ----

L40S = (Path(__file__).parents[2] / "examples" / "l40s.txtpb").read_text()


def described(tmp_path: Path, text: str) -> str:
    path = tmp_path / "gpu.txtpb"
    path.write_text(text)
    return str(path)


def test_a_description_says_everything(tmp_path: Path) -> None:
    name = described(tmp_path, L40S)
    chip = device(name)
    assert (chip.name, chip.architecture, chip.compute_capability) == (name, "sm_89", (8, 9))
    assert (chip.cores, chip.threads_max, chip.l2_bytes) == (142, 218_112, 96 * 2**20)
    assert (chip.bandwidth_bytes_per_s, chip.assumed) == (864 * 10**9, "")
    described(tmp_path, L40S.replace("142", "18"))
    assert device(name).cores == 18


def test_what_a_description_leaves_out(tmp_path: Path) -> None:
    """It is as in the device of the same compute capability, or of the one before; the part that holds the numbers is enough."""
    name = described(tmp_path, "core_count: 10 threads_per_core_limit: 1024 cuda_compute_capability { major: 9 }")
    chip = device(name)
    assert (chip.architecture, chip.threads_max, chip.shared_bytes_per_core) == ("sm_90", 10_240, 228 * 1024)
    assert chip.assumed.startswith(
        f"{name} leaves out shared_memory_per_core (233472), shared_memory_per_block_optin (232448), "
    )
    assert chip.assumed.endswith(", block_dim_limit_y (65535): values of h200 used")


@pytest.mark.parametrize(
    ("change", "error", "place", "message"),
    [
        (
            ("core_count: 142", "core_count: many"),
            ParseError,
            "3:15",
            "core_count must be an integer of at least 1, got many",
        ),
        (("minor: 9", "minor 9"), ParseError, "16:11", "'9' where ':' or '{' is expected"),
        (("cuda_compute", "cuda_computer"), ParseError, "3:3", "the description lacks the GPU's compute capability"),
        (('"CUDA"', '"ROCM"'), Unsupported, "3:3", "does not describe an NVIDIA GPU"),
        (("warp: 32", "warp: 64"), Unsupported, "3:3", "warps have 64 threads, but NVIDIA GPUs have 32"),
    ],
)
def test_a_description_that_is_wrong(
    change: tuple[str, str], error: type[Exception], place: str, message: str, tmp_path: Path
) -> None:
    name = described(tmp_path, L40S.replace(*change))
    with pytest.raises(error, match=re.escape(message)) as raised:
        device(name)
    assert str(raised.value).startswith(f"{name}:{place}: error: [target] ")


def test_a_description_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "gpu.txtpb").write_bytes(b"core_count: \xff")
    with pytest.raises(ParseError, match="is not text: byte 12"):
        device(str(tmp_path / "gpu.txtpb"))
