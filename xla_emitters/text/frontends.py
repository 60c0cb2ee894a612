"""HLO and StableHLO, text or binary, as frontends of stock `xdsl-opt`: `xdsl-opt gelu.hlo`, `xdsl-opt -f stablehlo layer.mlir`."""

from __future__ import annotations

from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.frontend import Frontend

from xla_emitters.text.binary.reading import text_of
from xla_emitters.text.hlo import parse_hlo
from xla_emitters.text.stablehlo import parse_stablehlo


class HloFrontend(Frontend):
    """HLO text to the `hlo` dialect."""

    name = "hlo"

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:  # noqa: A002  # xDSL's name
        return parse_hlo(*text_of(input.read(), input_name))


class StableHloFrontend(Frontend):
    """StableHLO to the `hlo` dialect."""

    name = "stablehlo"

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:  # noqa: A002  # xDSL's name
        return parse_stablehlo(*text_of(input.read(), input_name))
