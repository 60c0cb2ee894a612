"""StableHLO text to a verified module of the `hlo` dialect: the text becomes a tree, and the tree becomes computations.

    module = parse_stablehlo(text, "layer.mlir")

The text is one program. Its entry is the function that the caller names, or @main, or @tao_main (BladeDISC's name), or the only public
function that no other one calls; the entry's parameters are p0, p1 ...
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.support.source import Source
from xla_emitters.text.stablehlo.checks import CHECK_RULES, CHECK_TARGETS
from xla_emitters.text.stablehlo.chlo import CHLO_RULES, CHLO_TARGETS
from xla_emitters.text.stablehlo.computations import ModuleBuilder, Rule
from xla_emitters.text.stablehlo.mhlo import MHLO_RULES
from xla_emitters.text.stablehlo.mlir_rules import MLIR_RULES
from xla_emitters.text.stablehlo.parser import TreeParser
from xla_emitters.text.stablehlo.region_rules import REGION_RULES
from xla_emitters.text.stablehlo.rules import CALL_TARGETS, DATA_RULES, call_function, custom_call
from xla_emitters.text.stablehlo.scans import composite, scan

RULES: dict[str, Rule] = {
    **{f"stablehlo.{name}": rule for name, rule in (DATA_RULES | REGION_RULES).items()},
    **{f"chlo.{name}": rule for name, rule in CHLO_RULES.items()},
    "chlo.scan": scan,
    "stablehlo.composite": composite,
    **CHECK_RULES,
    "func.call": call_function,
    **MHLO_RULES,
    **MLIR_RULES,
    "stablehlo.custom_call": custom_call(CALL_TARGETS | CHECK_TARGETS | CHLO_TARGETS),
}
"""Op name -> the rule that converts it."""


def parse_stablehlo(text: str, file: str = "<stablehlo>", entry: str = "") -> ModuleOp:
    """The module that `text` describes, verified.

    file    name of the text in messages and locations
    entry   name of the function to compile, with or without `@`; "": the rule in the file's head
    raises  UsageError if no function has that name; VerifyError that lists the public functions if none is the entry by that rule;
            ParseError if it is not StableHLO text, VerifyError if it breaks a rule (shapes, types, names), Unsupported for legal text that
            is not supported; all with the place
    """
    source = Source(text, file)
    parser = TreeParser(source)
    program = parser.program()
    return ModuleBuilder(source, program, parser.aliases, RULES, entry.removeprefix("@")).module()
