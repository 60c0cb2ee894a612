"""Names of functions of the runtime: function, device, and the types of arguments and results.

    ral_gemm___gpu___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1_i1___void

`dialects/disc_ral` builds them from types; a host program finds functions by them, in bundles too.
"""

from __future__ import annotations

from typing import NamedTuple

from xla_emitters.errors import UsageError


class RalName(NamedTuple):
    """The parts of a name: codes of argument and result types, () for none."""

    call: str
    device: str
    ins: tuple[str, ...]
    outs: tuple[str, ...]

    def __str__(self) -> str:
        return "___".join((self.call, self.device, "_".join(self.ins) or "void", "_".join(self.outs) or "void"))

    @staticmethod
    def parse(text: str, default_device: str = "gpu") -> RalName:
        """The inverse of `str`; a name in the seed's spelling, without a device, gets `default_device`.

        raises UsageError for a text that is no such name

        >>> RalName.parse("ral_gemm___pvoid_m2df32_i1___void").device
        'gpu'
        """
        match text.rsplit("___", 3):  # a call may end with an underscore
            case [call, device, ins, outs] if "___" not in call.rstrip("_"):
                pass
            case [call, ins, outs]:
                device = default_device
            case _:
                raise UsageError(f"'{text}' is not the name of a runtime function", stage="ral")
        return RalName(call, device, _codes(ins), _codes(outs))


def _codes(text: str) -> tuple[str, ...]:
    return () if text == "void" else tuple(text.split("_"))
