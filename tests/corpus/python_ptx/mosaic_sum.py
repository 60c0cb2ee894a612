"""JAX 0.10.2, its Pallas and Mosaic GPU, without a driver: a sum of arrays that tensor maps bring to dynamic shared memory.

The plugin of jax-cuda13-pjrt makes the text from mosaic_sum.hlo for the topology of an H200 (MOSAIC_GPU_DUMP_PTX=1 MOSAIC_GPU_DUMP_TO=.);
for the rest of its work it misses the driver.
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu


def kernel(x, y, out):
    out[...] = x[...] + y[...]


whole = jax.ShapeDtypeStruct((256,), jnp.float32)
add = jax.jit(pl.pallas_call(kernel, out_shape=whole, compiler_params=mosaic_gpu.CompilerParams()))
lowered = add.trace(whole, whole).lower(lowering_platforms=("cuda",))
open("mosaic_sum.hlo", "w").write(lowered.compiler_ir("hlo").as_hlo_text())
