"""HLO and StableHLO text as frontends of stock `xdsl-opt`: `xdsl-opt gelu.hlo`, `xdsl-opt -f stablehlo layer.mlir`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.frontend import Frontend

from xla_emitters.hlo_text import parse_hlo
from xla_emitters.stablehlo_text import parse_stablehlo
from xla_emitters.texts.decoding import decoded


@dataclass(frozen=True)
class HloFrontend(Frontend):
    """HLO text to the `hlo` dialect."""

    name = "hlo"

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:  # noqa: A002  # xDSL's name
        return parse_hlo(decoded(input.read(), input_name, "read"), input_name)


@dataclass(frozen=True)
class StableHloFrontend(Frontend):
    """StableHLO to the `hlo` dialect."""

    name = "stablehlo"

    def parse(self, ctx: Context, input: IO[bytes], input_name: str) -> ModuleOp:  # noqa: A002  # xDSL's name
        return parse_stablehlo(decoded(input.read(), input_name, "read"), input_name)
