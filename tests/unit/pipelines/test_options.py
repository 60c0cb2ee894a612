"""Options of a compilation: the keywords of `compile` are the fields of `CompileOptions`; unknown names are refused."""

from dataclasses import fields

import pytest

from xla_emitters.errors import UsageError
from xla_emitters.pipelines.options import RECORDS, TRITON, TUNE, CompileKeywords, CompileOptions


def test_the_keywords_of_compile_are_the_fields() -> None:
    """Names and types, none of them required."""
    assert CompileKeywords.__annotations__.keys() == {field.name for field in fields(CompileOptions)}
    assert CompileKeywords.__required_keys__ == frozenset()
    types = {name: given.__forward_arg__ for name, given in CompileKeywords.__annotations__.items()}
    assert types == {field.name: field.type for field in fields(CompileOptions)}


def test_ways_with_triton() -> None:
    assert [CompileOptions(triton=way).triton for way in TRITON] == ["rows", "split", "refuse"]
    with pytest.raises(UsageError, match="unknown way with Triton's fusions 'keep'") as raised:
        CompileOptions(triton="keep")
    assert raised.value.help == "one of: rows, split, refuse"


def test_records() -> None:
    assert [CompileOptions(record=record).record for record in RECORDS] == ["none", "stages", "passes", "rewrites"]
    with pytest.raises(UsageError, match="unknown record 'all'") as raised:
        CompileOptions(record="all")
    assert raised.value.help == "one of: none, stages, passes, rewrites"


def test_ways_to_choose_kernels() -> None:
    assert [CompileOptions(tune=way).tune for way in TUNE] == ["xla", "auto", "price"]
    with pytest.raises(UsageError, match="unknown way to choose a kernel 'time'") as raised:
        CompileOptions(tune="time")
    assert raised.value.help == "one of: xla, auto, price"
    with pytest.raises(UsageError, match="not a pipeline"):
        CompileOptions(tune="price", pipeline=())


@pytest.mark.parametrize("seed", [-(1 << 63) - 1, 1 << 64])
def test_a_seed_has_64_bits(seed: int) -> None:
    with pytest.raises(UsageError, match="has more than 64 bits"):
        CompileOptions(rng_seed=seed)


def test_the_device_is_the_targets() -> None:
    assert CompileOptions().device.name == "h200"
    assert CompileOptions(target="sm_86").device.name == "a6000"
