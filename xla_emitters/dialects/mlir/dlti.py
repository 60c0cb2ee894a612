"""The `dlti` dialect: xDSL's, which reads entries in either of MLIR's two spellings.

    #dlti.dl_spec<index = 32 : i32, #dlti.dl_entry<i64, 8 : i32>>

Source: MLIR 22, dlti dialect.
"""

from __future__ import annotations

from xdsl.dialects import dlti as upstream
from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.dlti import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary, reportAssignmentType]
from xdsl.dialects.dlti import DataLayoutEntryAttr
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser

from xla_emitters.dialects.completion import dialect_of


class _EntryMap(upstream.DLTIEntryMap):
    # xDSL's attributes are final: ours are classes of their own.

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[ArrayAttr[DataLayoutEntryAttr]]:
        def parse_entry() -> DataLayoutEntryAttr:
            first = parser.parse_attribute()
            if isinstance(first, DataLayoutEntryAttr):
                return first
            parser.parse_punctuation("=")
            return DataLayoutEntryAttr.new((first, parser.parse_attribute()))

        return (ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_entry)),)


@irdl_attr_definition(init=False)
class DataLayoutSpecAttr(_EntryMap):
    """Sizes and alignments of types."""

    name = "dlti.dl_spec"


@irdl_attr_definition(init=False)
class TargetDeviceSpecAttr(_EntryMap):
    """Properties of one device."""

    name = "dlti.target_device_spec"


@irdl_attr_definition(init=False)
class TargetSystemSpecAttr(_EntryMap):
    """Devices by name."""

    name = "dlti.target_system_spec"


@irdl_attr_definition(init=False)
class MapAttr(_EntryMap):
    """Entries for anything else."""

    name = "dlti.map"


DLTI = dialect_of(  # pyright: ignore[reportConstantRedefinition]  # xDSL's has that name
    upstream.DLTI, (), (DataLayoutSpecAttr, TargetDeviceSpecAttr, TargetSystemSpecAttr, MapAttr)
)
