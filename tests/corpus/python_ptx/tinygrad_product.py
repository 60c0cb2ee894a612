"""tinygrad 0.14, its own renderer of PTX: the product of two matrices, whose blocks reduce in shared memory."""

from tinygrad import Tensor
from tinygrad.codegen import to_program
from tinygrad.helpers import Target
from tinygrad.renderer.ptx import PTXRenderer
from tinygrad.uop.ops import Ops

renderer = PTXRenderer(Target("CUDA", "PTX", "sm_80"))
x, y = (Tensor.empty(32, 32, device="PYTHON") for _ in "xy")
(call,) = [each for each in (x @ y).schedule_linear().src if each.src[0].op is Ops.SINK]
program = to_program(call.src[0], renderer)
print(program.arg.launch_dims({}), program.arg.globals)
source = next(each.arg for each in program.src if each.op is Ops.SOURCE)
open("tinygrad_product.ptx", "wb").write(renderer.compiler.compile(source))
