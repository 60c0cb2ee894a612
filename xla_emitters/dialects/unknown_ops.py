"""What to write instead of an op that no dialect here has: an op of a neighbouring project, or a name with a slip in it.

    there is no op 'arith.adf'         did you mean 'arith.addf'?
    there is no op 'mhlo.add'          instructions of HLO are ops of 'hlo' with a name: hlo.add ... {name = "x"}; ...

Source: the dialects of StableHLO, MLIR-HLO and BladeDISC.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from xdsl.ir import Dialect

_STABLEHLO = "'xla-emitters compile FILE --stage hlo' reads StableHLO and prints it as ops of 'hlo'"
_HLO = f"instructions of HLO are ops of 'hlo' with a name: hlo.NAME ... {{name = \"x\"}}; {_STABLEHLO}"
_LMHLO = (
    "HLO on buffers is the dialect 'lmhlo', with what is read before the arrow and what is written behind it: "
    'lmhlo.NAME %x, %y -> %z {name = "z"}; copies between host and device are lmhlo.copy'
)
_SIZES = 'sizes have names in attributes, such as disc.sizes = ["b", "4*s"] on memref.alloc; no op declares them'

_NEIGHBOURS: Mapping[str, str] = {
    **dict.fromkeys(("stablehlo", "chlo", "vhlo"), _STABLEHLO),
    **dict.fromkeys(("mhlo", "mhlo_disc", "xla_hlo", "hlo_disc"), _HLO),
    **dict.fromkeys(("lmhlo_disc", "xla_lhlo", "lhlo", "lmhlo_gpu"), _LMHLO),
    "disc_shape": _SIZES,
    "shape": "a size is hlo.get_dimension_size of a tensor, memref.dim of a buffer",
}


def help_for(name: str, dialects: Mapping[str, Callable[[], Dialect]]) -> str:
    """What to write instead of the op `name`; "" if nothing is near it."""
    prefix, dot, word = name.partition(".")
    if prefix in _NEIGHBOURS:
        return _NEIGHBOURS[prefix]
    if not dot:
        near = ["func.func"] if name == "func" else []  # as MLIR wrote it until 2022
    elif prefix in dialects:
        words = (op.name.partition(".")[2] for op in dialects[prefix]().operations)
        near = [f"{prefix}.{found}" for found in difflib.get_close_matches(word, words, 1)]
    else:
        near = difflib.get_close_matches(prefix, dialects, 1, cutoff=0.8)
        if not near:
            return "--allow-unregistered-dialect reads ops of any dialect in their generic form"
    return f"did you mean '{near[0]}'?" if near else ""
