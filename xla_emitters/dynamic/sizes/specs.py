"""The arrays of a program as plain values: sizes are numbers, the text of expressions in its symbols, or None where only data decide.

spec_of(value, sizes)    ->    f32[b,s,64]
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.computation import TupleOp
from xla_emitters.dialects.hlo.types import as_array, dims_of, element_of, is_array, leaf_types
from xla_emitters.dynamic.sizes.program import Sizes
from xla_emitters.graph.entry import entry_of
from xla_emitters.program.arrays import ArraySpec
from xla_emitters.program.arrays import Size as Plain


def plain_size(size: Size | int | None) -> Plain:
    """A number, the text of an expression, or None."""
    value = size.value if isinstance(size, Size) else size
    return str(size) if value is None and size is not None else value


def spec_of(value: SSAValue, sizes: Sizes) -> ArraySpec:
    """The array that a value is."""
    dims = dims_of(value)
    known = sizes.of(value) or (None,) * len(dims)
    shape = [dim if dim >= 0 else plain_size(size) for dim, size in zip(dims, known, strict=True)]
    return ArraySpec.sized(element_of(value).name, shape)


def parameter_specs(sizes: Sizes) -> Iterator[ArraySpec]:
    """The program's parameters."""
    for element, parameter in zip(sizes.guards.types, sizes.guards.parameters, strict=True):
        yield ArraySpec.sized(element, list(map(plain_size, parameter.shape)))


def result_specs(module: ModuleOp, sizes: Sizes) -> Iterator[ArraySpec]:
    """The program's results."""
    root = entry_of(module).root
    for value in root.owner.operands if isinstance(root.owner, TupleOp) else [root]:
        if is_array(value.type):
            yield spec_of(value, sizes)
        else:
            for leaf in filter(is_array, leaf_types(value.type)):
                shape = [dim if dim >= 0 else None for dim in as_array(leaf).get_shape()]
                yield ArraySpec.sized(element_of(leaf).name, shape)
