"""Which part of a whole array each device holds: `sharding=` of HLO's parameters.

    {devices=[2,1,4]<=[8] last_tile_dim_replicate}      dimension 0 in 2 parts, each on 4 devices: 0 to 3 have the first, 4 to 7 the second
    {devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}     {devices=[2,2]0,2,1,3}     {replicated}     {maximal device=3}

Source: xla_data.proto, OpSharding; hlo_sharding.cc for the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from xla_emitters.dialects.hlo.device_groups import numbers_of_iota
from xla_emitters.dtypes import Array
from xla_emitters.errors import DataError


@dataclass(frozen=True)
class Shards:
    """tiles  parts along each dimension of the array
    part   of each device: its place among the parts, row major
    """

    tiles: tuple[int, ...]
    part: tuple[int, ...]

    @classmethod
    def parse(cls, text: str, rank: int, devices: int) -> Shards | None:
        """The shards that `sharding=TEXT` means for an array of `rank` dimensions; None where each device has an array of its own.

        raises DataError for a list of devices that is none
        """
        text = text.strip().removeprefix("{").removesuffix("}").strip()
        if text == "replicated" or text.startswith("maximal"):
            return cls((1,) * rank, (0,) * devices)
        found = re.match(r"devices=\[([\d,]+)\](<=\[[\d,]+\](?:T\([\d,]+\))?|[\d,]+)", text)
        if found is None or "manual" in text:
            return None
        try:
            sizes = _numbers(found[1])
            if found[2].startswith("<="):
                order = [int(device) for device in numbers_of_iota(f"[{found[1]}]{found[2]}").reshape(-1)]
            else:
                order = _numbers(found[2])
        except ValueError as error:
            raise DataError(f"sharding={{{text}}} names no devices: {error}", stage="arrays") from error
        copies = prod(sizes[rank:])
        if sorted(order) != list(range(devices)) or len(sizes) < rank:
            return None
        place = {device: number // copies for number, device in enumerate(order)}
        return cls(tuple(sizes[:rank]), tuple(place[device] for device in range(devices)))

    def whole(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the whole array, from that of a part."""
        return tuple(size * tiles for size, tiles in zip(shape, self.tiles, strict=True))

    def cut(self, array: Array, device: int) -> Array:
        """The part of a device."""
        return array[self._window(array.shape, device)]

    def together(self, parts: Sequence[Array]) -> Array:
        """The whole array, from the part of each device; of devices with the same part the first one's, as in JAX."""
        whole = np.zeros(self.whole(parts[0].shape), parts[0].dtype)
        for device, part in reversed(list(enumerate(parts))):
            whole[self._window(whole.shape, device)] = part
        return whole

    def _window(self, shape: Sequence[int], device: int) -> tuple[slice, ...]:
        place = np.unravel_index(self.part[device], self.tiles) if self.tiles else ()
        sizes = [size // tiles for size, tiles in zip(shape, self.tiles, strict=True)]
        return tuple(slice(int(at) * size, (int(at) + 1) * size) for at, size in zip(place, sizes, strict=True))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]
