"""Devices: found by model and by architecture, with the numbers that the vendor gives."""

from __future__ import annotations

import pytest

from xla_emitters.device import DEFAULT_DEVICE, DEVICES, device, device_running
from xla_emitters.errors import UsageError


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
