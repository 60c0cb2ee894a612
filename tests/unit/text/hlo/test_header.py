"""The module's attributes and tables, and the errors if they do not fit the entry."""

import pytest
from xdsl.dialects.builtin import StringAttr

from xla_emitters.errors import XlaEmittersError
from xla_emitters.text.hlo import parse_hlo, print_hlo

ENTRY = "ENTRY e {\n  p = f32[4] parameter(0)\n  q = (f32[4], s32[]) parameter(1)\n  ROOT t = (f32[4]) tuple(p)\n}\n"


def test_what_nothing_here_needs_is_kept_as_it_was_written():
    text = (
        "HloModule m, is_scheduled=true, replica_count=2, num_partitions=4, buffer_donor={ (0, {}) }, "
        'alias_passthrough_params=false, allow_spmd_sharding_propagation_to_output={true}, frontend_attributes={a="{"}'
    )
    module = parse_hlo(f"{text}\n\n{ENTRY}")
    assert module.attributes["hlo.buffer_donor"] == StringAttr("{ (0, {}) }")
    assert print_hlo(module).splitlines()[0] == text


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("is_scheduled=1", "'true' or 'false'"),
        ("replica_count=two", "expected the value of 'replica_count'"),
        ("num_partition=2", "did you mean 'num_partitions'?"),
        ("input_output_alias={ {}: (2, {}) }", "names parameter 2, which does not exist"),
        ("input_output_alias={ {1}: (0, {}) }", "names element {1} of the result, which does not exist"),
        ("input_output_alias={ {0}: (1, {0,0}) }", "names element {0,0} of parameter 1, which does not exist"),
        ("input_output_alias={ {0}: (1, {0}), {0}: (0, {}) }", "input_output_alias names output {0} twice"),
        ("entry_computation_layout={(f32[4]{0})->f32[4]{0}}", "does not match the entry"),
        ("entry_computation_layout={(f32[4]{0}, (f32[4]{0}, s32[]))->(f32[5]{0})}", "does not match the entry"),
        ("entry_computation_layout={f32[4]}", "expected '('"),
        ("entry_computation_layout={(f32[4]{7})->f32[4]{0}}", "layout {7} does not fit an array of rank 1"),
    ],
)
def test_what_does_not_fit_says_why(attribute: str, message: str):
    with pytest.raises(XlaEmittersError) as error:
        parse_hlo(f"HloModule m, {attribute}\n\n{ENTRY}", "t.hlo")
    assert error.value.place.file == "t.hlo"
    assert message in str(error.value)
