"""Formats of the dialects here wait until they are used, and all of them are right; others are compiled at once."""

from __future__ import annotations

import subprocess
import sys

import pytest
from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def
from xdsl.utils.exceptions import PyRDLOpDefinitionError

from xla_emitters.dialects.context import DIALECTS
from xla_emitters.dialects.xdsl_patches.lazy_formats import OURS_AND_XDSLS, compile_format


@pytest.mark.parametrize("name", sorted(OURS_AND_XDSLS))
def test_every_format_that_waits_is_right(name: str):
    for op in DIALECTS[name]().operations:
        if not issubclass(op, IRDLOperation) or "get_irdl_definition" not in vars(op):  # builtin.unregistered has none
            continue
        definition = op.get_irdl_definition()
        if definition.assembly_format is not None:
            compile_format(definition.assembly_format, definition)


def test_loading_the_compiler_compiles_few_formats():
    """Those of xDSL's own `builtin`, which is loaded before, and of dialects that are not named."""
    code = (
        "import xdsl.irdl.declarative_assembly_format_parser as p; made = []; whole = p.FormatParser.parse_format\n"
        "p.FormatParser.parse_format = lambda self: made.append(self) or whole(self)\n"
        "import xla_emitters.pipelines.compiler; print(len(made))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 10


def test_a_wrong_format_of_somebody_elses_op_is_an_error_at_once():
    with pytest.raises(PyRDLOpDefinitionError):

        @irdl_op_definition
        class WrongOp(IRDLOperation):
            name = "mine.wrong"
            result = result_def()
            assembly_format = "$nothing attr-dict"
