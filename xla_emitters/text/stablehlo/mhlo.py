"""Conversion of the ops of MHLO that StableHLO lacks, and of regions that only mark a part of a program.

    "mhlo.copy"(%x)   "mhlo.domain"(%x)   mhlo.add_dependency %x, %token           %x
    "mhlo.topk"(%x) {k = 2 : i64, largest = true}                                  topk
    "mhlo.rng_uniform"(%low, %high, %shape)                                        rng distribution=rng_uniform
    "mhlo.bitcast"(%x) : (tensor<2x3xf32>) -> tensor<6xf32>                        reshape
    "mhlo.fusion"(%x) ({...})   sdy.named_computation<"f">(%x) (...) {...}         the ops of the region
    sdy.manual_computation(%x) ... (...) {...}                                     the same, where no array is cut

Source: the ODS declarations of MLIR-HLO (mhlo_ops.td); Shardy's dialect (https://openxla.org/shardy/sdy_dialect).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from xla_emitters.dialects.hlo.types import element_of
from xla_emitters.text.stablehlo.chlo import top_k
from xla_emitters.text.stablehlo.computations import Conversion, Rule
from xla_emitters.text.stablehlo.rules import Results, pass_through, random_numbers, refused
from xla_emitters.text.stablehlo.spellings import OWN, REGIONS
from xla_emitters.text.stablehlo.types import stablehlo_type


def _bitcast(c: Conversion) -> Results:
    """Row-major arrays of one element type: the same elements in another shape."""
    (x,) = c.expect_operands(1)
    if element_of(x) != element_of(c.type) or any("layout" in name for name in c.attributes.found):
        raise c.unsupported("'mhlo.bitcast' is taken without layouts, from and to one element type")
    return c.add("reshape", [x], c.type)


def _inlined(c: Conversion) -> Results:
    """The ops of the region, whose arguments are the operands."""
    (region,) = c.expect_regions(1)
    if [argument.type for argument in region.arguments] != [operand.type for operand in c.op.operands]:
        raise c.wrong(f"the arguments of the region of '{c.op.name}' have the types of its operands")
    c.body.values |= dict(zip(region.arguments, c.operands, strict=True))
    return c.body.ops(region)


def _manual_computation(c: Conversion) -> Results:
    """Each device computes the region with its part of the operands: with whole operands and results it is the program's."""
    (region,) = c.expect_regions(1)
    inside = [value.type for value in (*region.arguments, *region.returned.operands)]
    outside = [value.type for value in (*c.op.operands, *c.op.results)]
    if inside != outside:
        cut = next((pair for pair in zip(outside, inside, strict=False) if pair[0] != pair[1]), None)
        example = f": {stablehlo_type(cut[0])} is cut to {stablehlo_type(cut[1])}" if cut else ""
        raise c.unsupported(
            f"'{c.op.name}' is not taken: its region runs on each of several devices{example}",
            help="xla-emitters optimize FILE has XLA partition it, for all of them",
        )
    return _inlined(c)


_NOTHING: Sequence[SSAValue] = ()
MHLO_RULES: dict[str, Rule] = {
    **dict.fromkeys((f"mhlo.{name}" for name in OWN), refused("StableHLO has no such op")),
    **dict.fromkeys(REGIONS, _inlined),
    "sdy.manual_computation": _manual_computation,
    **dict.fromkeys(("mhlo.copy", "mhlo.domain", "sdy.sharding_constraint", "sdy.reshard"), pass_through),
    **dict.fromkeys(("sdy.propagation_barrier", "sdy.data_flow_edge"), pass_through),
    "sdy.sharding_group": lambda c: _NOTHING,
    "mhlo.add_dependency": lambda c: c.expect_operands(2)[0],
    "mhlo.bitcast": _bitcast,
    "mhlo.topk": top_k,
    "mhlo.rng_uniform": random_numbers("rng_uniform"),
    "mhlo.rng_normal": random_numbers("rng_normal"),
}
