"""Replaces ops that NVIDIA's device library implements by calls of it: for xla-convert-math-to-libdevice, whose head has the rules, and
for xla-lower-to-llvm-gpu if that pass has not run.

Source: names as in MLIR's GPU-to-NVVM conversion (mlir-opt 22 --convert-gpu-to-nvvm); NVIDIA's libdevice user guide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, LocationAttr, ModuleOp, f32
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, Region
from xdsl.rewriter import InsertPoint

from xla_emitters.dialects.locations import fuse_all, located_builder, replace_by
from xla_emitters.dialects.mlir import arith, func
from xla_emitters.dialects.quick_op import walk
from xla_emitters.dtypes import WIDE_FLOATS
from xla_emitters.functions import BY_OP, Gpu
from xla_emitters.rewrite.symbols import Scope, functions, scopes

_CALLED = {op: row for op, row in BY_OP.items() if row.libdevice and row.gpu is Gpu.LIBDEVICE}


def call_libdevice(root: ModuleOp, declined: Callable[[Operation, str], None]) -> None:
    """Replaces every op of the table by a call. `declined` is called with each op that is left, and the reason."""
    for module in scopes(root):
        declared, sources = functions(module), defaultdict[func.FuncOp, list[LocationAttr]](list[LocationAttr])
        for found in list(walk(module)):
            if found.name not in _CALLED:
                continue
            if isinstance(found.results[0].type, WIDE_FLOATS):
                sources[_convert(found, module, declared)].append(found.location)
            elif module is root:
                declined(found, f"libdevice has no function on {found.results[0].type}")
        for function, locations in sources.items():
            function.location = fuse_all((function.location, *locations))


def _convert(op: Operation, module: Scope, declared: dict[str, func.FuncOp]) -> func.FuncOp:
    """Replaces an op; returns the function that is called."""
    result_type = op.results[0].type
    function = _CALLED[op.name]
    name = function.libdevice
    if isinstance(result_type, Float64Type):
        symbol = f"__nv_{name}"
    else:
        symbol = f"__nv_fast_{name}f" if function.has_fast and _allows_approximation(op) else f"__nv_{name}f"

    builder = located_builder(InsertPoint.before(op), op)
    is_half = isinstance(result_type, Float16Type | BFloat16Type)
    computed_in = f32 if is_half else result_type
    arguments = [
        builder.insert(arith.ExtFOp(operand, f32)).result if is_half and operand.type == result_type else operand
        for operand in op.operands
    ]
    call = builder.insert(func.CallOp(symbol, arguments, [computed_in]))
    result = builder.insert(arith.TruncFOp(call.res[0], result_type)).result if is_half else call.res[0]
    if symbol not in declared:
        declared[symbol] = _declare(symbol, [argument.type for argument in arguments], computed_in, module)

    replace_by(op, [result])
    return declared[symbol]


def _allows_approximation(op: Operation) -> bool:
    """Whether the op's fastmath flags include afn (as fast does)."""
    flags = op.properties.get("fastmath", op.attributes.get("fastmath"))
    return isinstance(flags, arith.FastMathFlagsAttr) and FastMathFlag.APPROX_FUNC in flags.data


def _declare(symbol: str, arguments: list[Attribute], result: Attribute, module: Scope) -> func.FuncOp:
    """Declares a function at the module's start."""
    declaration = func.FuncOp(symbol, (arguments, [result]), Region(), "private")
    block = module.body.block
    if block.first_op is None:
        block.add_op(declaration)
    else:
        block.insert_op_before(declaration, block.first_op)
    return declaration
