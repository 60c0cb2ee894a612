"""Names of functions of the runtime: what is called, on which device, and the types that go in and out.

    ral_gemm___gpu___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1_i1___void

`dialects/disc_ral` makes them of types; a host program finds functions by them, in bundles too.
"""

from __future__ import annotations

from typing import NamedTuple

from xla_emitters.errors import UsageError


class RalName(NamedTuple):
    """What a name says: the codes of types in and out, () for none."""

    call: str
    device: str
    ins: tuple[str, ...]
    outs: tuple[str, ...]

    def __str__(self) -> str:
        return "___".join((self.call, self.device, "_".join(self.ins) or "void", "_".join(self.outs) or "void"))

    @property
    def without_device(self) -> str:
        """The seed's spelling."""
        return "___".join((self.call, "_".join(self.ins) or "void", "_".join(self.outs) or "void"))

    @staticmethod
    def parse(text: str, default_device: str = "gpu") -> RalName:
        """The inverse of `str`; the seed's spelling, which names no device, is read as that of `default_device`.

        raises UsageError for what is no such name

        >>> RalName.parse("ral_gemm___pvoid_m2df32_i1___void").device
        'gpu'
        """
        match text.split("___"):
            case [call, device, ins, outs]:
                pass
            case [call, ins, outs]:
                device = default_device
            case _:
                raise UsageError(f"'{text}' is no name of a runtime function", stage="ral")
        return RalName(call, device, _codes(ins), _codes(outs))


def _codes(text: str) -> tuple[str, ...]:
    return () if text == "void" else tuple(text.split("_"))
