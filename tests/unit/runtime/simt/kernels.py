"""Small kernels around a few ops: each thread takes its element of every input, runs the ops, and writes its result.

per_thread("%r = arith.addi %a, %b : i8", "i8", a=("i8", a), b=("i8", b))    ->   one value of %r per element of the inputs
"""

import numpy as np
from xdsl.dialects.builtin import IntegerType, ModuleOp, i1
from xdsl.ir import Attribute

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dtypes import Array, dtype_of
from xla_emitters.runtime.simt import execute

THREADS = 32


def launch(threads: int, blocks: int) -> str:
    """The attributes that say a launch."""
    return f"gpu.known_block_size = array<i32: {threads}, 1, 1>, gpu.known_grid_size = array<i32: {blocks}, 1, 1>"


def numpy_type(ir_type: str) -> np.dtype:
    """What an array of an IR type is: signless integers are signed in NumPy."""
    module = parse_ir(f'"test.op"() {{type = {ir_type}}} : () -> ()', allow_unregistered=True)
    (op,) = module.ops
    attribute: Attribute = op.attributes["type"]
    if attribute == i1:
        return np.dtype(np.bool_)
    if isinstance(attribute, IntegerType) and attribute.width.data in (8, 16, 32, 64):
        return np.dtype(f"i{attribute.width.data // 8}")
    return np.dtype(np.int64) if ir_type == "index" else dtype_of(attribute).numpy


def kernel(
    ops: str, result_type: str, inputs: dict[str, str], elements: int, threads: int, declarations: str = ""
) -> ModuleOp:
    """A module whose entry takes one tensor per input and one for the result, each of blocks * threads elements."""
    blocks = -(-elements // threads)
    padded = blocks * threads
    arguments = "".join(
        f"%{name}_in: tensor<{padded}x{ir_type}> {{xla.invariant}}, " for name, ir_type in inputs.items()
    )
    loads = "".join(
        f"  %{name} = tensor.extract %{name}_in[%lane] : tensor<{padded}x{ir_type}>\n"
        for name, ir_type in inputs.items()
    )
    return parse_ir(f"""
{declarations}
func.func @main({arguments}%out: tensor<{padded}x{result_type}>) -> tensor<{padded}x{result_type}>
    attributes {{xla.entry, {launch(threads, blocks)}}} {{
  %thread = gpu.thread_id x
  %block = gpu.block_id x
  %threads = arith.constant {threads} : index
  %first = arith.muli %block, %threads : index
  %lane = arith.addi %first, %thread : index
{loads}
{ops}
  %written = tensor.insert %r into %out[%lane] : tensor<{padded}x{result_type}>
  return %written : tensor<{padded}x{result_type}>
}}
""")


def per_thread(
    ops: str,
    result_type: str,
    threads: int = THREADS,
    declarations: str = "",
    max_rounds: int | None = None,
    **inputs: tuple[str, Array],
) -> Array:
    """The value of %r for each element of the inputs, which are (IR type, flat array) by name of the value that `ops` uses.

    Inputs are padded to whole blocks with their own first element, so that padding does nothing that no element does.
    """
    elements = next(iter(inputs.values()))[1].size if inputs else threads
    module = kernel(ops, result_type, {name: t for name, (t, _) in inputs.items()}, elements, threads, declarations)
    padded = -(-elements // threads) * threads
    arrays = [
        np.concatenate([array, np.repeat(array[:1], padded - elements)]).astype(numpy_type(ir_type))
        for ir_type, array in inputs.values()
    ]
    result = np.zeros(padded, numpy_type(result_type))
    execute(module, [*arrays, result], max_rounds=max_rounds)
    return result[:elements]
