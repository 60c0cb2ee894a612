"""Parts of whole arrays: `sharding=` against JAX's own text and the parts written by hand."""

import numpy as np
import pytest

from xla_emitters.errors import DataError
from xla_emitters.runtime.shards import Shards

WHOLE = np.arange(32).reshape(4, 8)


@pytest.mark.parametrize(
    ("text", "windows"),
    [
        ("{replicated}", [(slice(0, 4), slice(0, 8))] * 4),
        ("{devices=[2,2]<=[4]}", [(slice(r, r + 2), slice(c, c + 4)) for r in (0, 2) for c in (0, 4)]),
        ("{devices=[2,2]0,2,1,3}", [(slice(r, r + 2), slice(c, c + 4)) for c in (0, 4) for r in (0, 2)]),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", [(slice(r, r + 2), slice(0, 8)) for r in (0, 0, 2, 2)]),
        (
            "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
            [(slice(0, 4), slice(c, c + 4)) for c in (0, 4, 0, 4)],
        ),
    ],
)
def test_each_device_has_its_part(text: str, windows: list[tuple[slice, slice]]) -> None:
    shards = Shards.parse(text, 2, 4)
    assert shards is not None
    parts = [shards.cut(WHOLE, device) for device in range(4)]
    for part, window in zip(parts, windows, strict=True):
        np.testing.assert_array_equal(part, WHOLE[window])
    np.testing.assert_array_equal(shards.together(parts), WHOLE)


def test_of_copies_that_differ_the_first_is_taken() -> None:
    """As JAX does: `shard_map(axis_index, out_specs=P(), check_vma=False)` is 0, and over the last axis of a (2, 2) mesh [0, 2]."""
    for text, whole in ("{replicated}", [0]), ("{devices=[2,2]<=[4] last_tile_dim_replicate}", [0, 2]):
        shards = Shards.parse(text, 1, 4)
        assert shards.together([np.array([device]) for device in range(4)]).tolist() == whole


@pytest.mark.parametrize(
    "text", ["{manual}", "{devices=[2,2]<=[4] last_tile_dims={manual}}", "{unknown}", "{devices=[3]<=[3]}"]
)
def test_what_says_nothing_of_parts(text: str) -> None:
    assert Shards.parse(text, 1, 4) is None


@pytest.mark.parametrize(
    "text",
    [
        "{devices=[0]<=[4]T(1)}",
        "{devices=[4]<=[2,2]T(1)}",
        "{devices=[4]<=[3]}",
        "{devices=[,]0,1,2,3}",
        "{devices=[4]0,,1,2}",
        f"{{devices=[{'9' * 5000}]0,1,2,3}}",
    ],
)
def test_a_list_of_devices_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="sharding="):
        Shards.parse(text, 1, 4)
