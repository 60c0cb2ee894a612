"""A program at fixed sizes: the same ops, with the numbers that the symbols' values give in their types.

    %y = add %x, %x : tensor<?x?xf32>        b = 2, s = 5        %y = add %x, %x : tensor<2x5xf32>

Sizes that depend on data stay unknown, and so do those of a computation that is called with several sizes. Ops that take sizes as
operands keep them: they compute the same values. The original program is walked once.
Source: docs/reference/4 2.1; jax.export's refinement of a module does the same to its text.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp, TupleType
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.algebra.size import Size
from xla_emitters.dialects.hlo.types import array_type, as_array, dims_of, has_dynamic_dims, is_array, tuple_type
from xla_emitters.dynamic.sizes.arrays import Leaf, Value
from xla_emitters.dynamic.sizes.program import Sizes, sizes_of


def specialize(module: ModuleOp, values: Mapping[str, int], sizes: Sizes | None = None) -> ModuleOp:
    """A copy of `module` whose types contain the sizes for these values of the symbols.

    sizes   of `module`; None: computed here
    raises  DataError for a symbol without a value, and for an undefined size
    """
    sizes = sizes or sizes_of(module)
    copies: dict[SSAValue, SSAValue] = {}
    result = module.clone(copies)
    for value, contexts in sizes.walk.values.items():
        if not has_dynamic_dims(value.type):
            continue
        types = {_type_at(value.type, found, sizes, values) for found in contexts}
        if len(types) == 1:
            Rewriter.replace_value_with_new_type(copies[value], types.pop())
    return result


def _type_at(ir_type: Attribute, found: Value, sizes: Sizes, values: Mapping[str, int]) -> Attribute:
    if isinstance(ir_type, TupleType) and isinstance(found, tuple):
        parts = zip(ir_type.types, found, strict=True)
        return tuple_type([_type_at(part, value, sizes, values) for part, value in parts])
    if not is_array(ir_type) or not isinstance(found, Leaf):
        return ir_type
    known = [sizes.walk.size(key) for key in found.axes]
    return array_type(
        as_array(ir_type).element_type,
        [_extent(size, dim, values) for size, dim in zip(known, dims_of(ir_type), strict=True)],
    )


def _extent(size: Size | None, dim: int, values: Mapping[str, int]) -> int:
    return dim if dim >= 0 or size is None else size.evaluate(values)
