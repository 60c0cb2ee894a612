"""What a module says about its machine."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import Unsupported
from xla_emitters.rewrite.data_layout import index_width


def test_index_width() -> None:
    """From the module's data layout, from inside too; 64 without one."""
    for spec, width in ((" attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>}", 32), ("", 64)):
        module = parse_ir(f"module{spec} {{ func.func @f(%x: index) -> index {{ func.return %x : index }} }}")
        assert index_width(module) == width
        assert {index_width(op) for op in module.walk()} == {width}


@pytest.mark.parametrize("bits", [-1, 0, 16, 2147483647])
def test_other_widths_are_refused(bits: int) -> None:
    module = parse_ir(f"module attributes {{dlti.dl_spec = #dlti.dl_spec<index = {bits} : i32>}} {{}}")
    with pytest.raises(Unsupported, match=f"an index of {bits} bits"):
        index_width(module)
