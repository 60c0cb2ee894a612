"""Analyses and emitters use only what `FusionView` declares, so another form of fusion needs to provide nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from xla_emitters.device import device
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.emitters.emit import emit_fusion
from xla_emitters.graph.buffers import kernel_arguments
from xla_emitters.graph.control_computations import kernel_sources
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.text.hlo import parse_hlo

CORPUS = Path(__file__).parents[2] / "corpus"
KINDS = ("concatenate", "dynamic_update_slice", "loop", "memcpy", "reduction", "scatter", "transpose")
MEMBERS = tuple(name for name in vars(FusionView) if not name.startswith("_"))


class Plain:
    """A fusion with the members of `FusionView` and no others, the values taken from another view."""

    def __init__(self, view: FusionView) -> None:
        for name in MEMBERS:
            setattr(self, name, {} if name == "analyses" else getattr(view, name))


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_only_these_members_is_emitted_the_same(kind: str) -> None:
    path = sorted((CORPUS / kind).glob("*.hlo"))[0]
    (source,) = kernel_sources(parse_hlo(path.read_text(), path.name))
    view = view_of(source)
    plain = cast(FusionView, cast(Any, Plain(view)))
    assert not hasattr(plain, "call")
    assert kernel_arguments(plain) == kernel_arguments(view)
    assert print_ir(emit_fusion(plain, device("h200"))) == print_ir(emit_fusion(view, device("h200")))
