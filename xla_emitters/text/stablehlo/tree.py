"""StableHLO programs as written: functions of ops with regions, before they become computations of the `hlo` dialect.

    Program   functions, by name
      Function  parameters, a region
        Region    arguments, ops, the values that it returns, and those from outside that it uses (`captured`)
          Op        "stablehlo.add", operands, attributes, regions, results

Names of values are resolved while the text is read, so a use in the tree refers to a `Value` object, not to a name. In StableHLO a region
may use values of the regions around it; in HLO a computation may not, so `captured` must be passed to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.ir import Attribute

from xla_emitters.text.stablehlo.attribute_values import Attributes, symbols_in
from xla_emitters.text.stablehlo.stablehlo_lexer import Token
from xla_emitters.text.stablehlo.stablehlo_locations import Location


class Value:
    """A result of an op, or an argument of a region.

    name   as written, without `%`
    token  of its definition
    home   the region that defines it
    owner  the op with this result; None for an argument
    """

    __slots__ = ("home", "name", "owner", "token", "type")

    def __init__(self, name: str, ir_type: Attribute, token: Token, home: Region, owner: Op | None = None):
        self.name = name
        self.type = ir_type
        self.token = token
        self.home = home
        self.owner = owner


@dataclass(eq=False)
class Op:
    """One op.

    name       with its dialect, "stablehlo.add"
    token      the name in the text
    operands   each with its token in the text
    location   from the text's `loc`
    written    text of the keys before the region of an op of Shardy
    """

    name: str
    token: Token
    attributes: Attributes
    operands: list[Value] = field(default_factory=list[Value])
    spans: list[Token] = field(default_factory=list[Token])
    regions: list[Region] = field(default_factory=list["Region"])
    results: list[Value] = field(default_factory=list[Value])
    location: Location | None = None
    written: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def opcode(self) -> str:
        """The name without the dialect."""
        return self.name.rpartition(".")[2]


@dataclass(eq=False)
class Region:
    """The ops between `{` and `}`.

    around    the region that contains the op with this region; None for a function's body
    returned  its terminator
    captured  the values from outside that it uses, in the order of their first use
    """

    around: Region | None
    token: Token
    arguments: list[Value] = field(default_factory=list[Value])
    ops: list[Op] = field(default_factory=list[Op])
    captured: dict[Value, None] = field(default_factory=dict[Value, None])

    @property
    def returned(self) -> Op:
        return self.ops[-1]

    def uses(self, value: Value) -> None:
        """Records the use of `value` in this region."""
        region: Region | None = self
        while region is not None and region is not value.home:
            region.captured[value] = None
            region = region.around


@dataclass(eq=False)
class StableHloFunction:
    """A function: `@name`, its place, its body, and the text's facts about its parameters and results.

    is_declared  whether it has no body
    """

    name: str
    token: Token
    body: Region
    results: list[Attribute]
    attributes: Attributes
    parameter_attributes: list[Attributes] = field(default_factory=list[Attributes])
    parameter_locations: list[Location | None] = field(default_factory=list["Location | None"])
    result_attributes: list[Attributes] = field(default_factory=list[Attributes])
    is_public: bool = True
    is_declared: bool = False


@dataclass(eq=False)
class StableHloModule:
    """A module: its name, its functions in text order, and its attributes.

    declared  the functions without a body
    skipped   the ops beside the functions, which are not read: their symbols, or a number -> their names in the text
    meshes    of devices, for Shardy: their symbols -> their texts
    """

    name: str
    attributes: Attributes
    functions: dict[str, StableHloFunction] = field(default_factory=dict[str, StableHloFunction])
    declared: dict[str, StableHloFunction] = field(default_factory=dict[str, StableHloFunction])
    skipped: dict[str, Token] = field(default_factory=dict[str, Token])
    meshes: dict[str, str] = field(default_factory=dict[str, str])


def called_functions(region: Region) -> Iterator[tuple[str, Token]]:
    """The functions that the ops of a region and of its nested regions name, with the ops' tokens."""
    for op in region.ops:
        for name, attr in op.attributes.found.items():
            if name != "call_target_name":
                yield from ((symbol.name, op.token) for symbol in symbols_in(attr.value))
        for inner in op.regions:
            yield from called_functions(inner)
