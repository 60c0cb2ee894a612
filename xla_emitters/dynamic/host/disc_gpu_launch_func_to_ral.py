"""A launch of a kernel becomes a call of the runtime, which loads the kernel before its first launch.

    gpu.launch_func @k::@k blocks in (%grid, 1, 1) threads in (256, 1, 1) args(%x, %y, %n)
->
    disc_ral.dispatch "ral_kernel_launch" on "gpu"(%ctx, %stream, %grid, %c1, %c1, %c256, %c1, %c1, %c0, %x, %y, %n) config "k"

The arguments: blocks in x, y, z, threads in x, y, z, bytes of dynamic shared memory, then the kernel's arguments. The name is that of
the kernel and of its module, which stays in the program: the compiler of kernels reads it from there.

Source: seed document, "GpuLaunchFuncToTaoRALPass"; docs/reference/4 4.5.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.disc_ral import DispatchOp
from xla_emitters.dialects.mlir import arith, gpu
from xla_emitters.dialects.quick_builder import QuickBuilder
from xla_emitters.dynamic.host.contexts import context_of, stream_of
from xla_emitters.rewrite.kernel_pass import KernelPass

LAUNCH = "ral_kernel_launch"


class DiscGpuLaunchFuncToRalPass(KernelPass):
    name = "disc-gpu-launch-func-to-ral"

    def apply_to(self, op: ModuleOp) -> None:
        for launch in [found for found in op.walk() if isinstance(found, gpu.LaunchFuncOp)]:
            if launch.asyncToken is not None or launch.clusterSizeX is not None:
                raise self.refuse(launch, "a launch in clusters, or one that returns a token")
            builder = QuickBuilder(InsertPoint.before(launch))
            shared = launch.dynamicSharedMemorySize
            if shared is None:
                shared = builder.insert(arith.ConstantOp(IntegerAttr(0, 32))).result
            sizes = (launch.gridSizeX, launch.gridSizeY, launch.gridSizeZ)
            sizes += (launch.blockSizeX, launch.blockSizeY, launch.blockSizeZ)
            arguments = [context_of(launch), stream_of(launch), *sizes, shared, *launch.kernelOperands]
            made = DispatchOp(LAUNCH, "gpu", arguments, config=StringAttr(launch.kernel.string_value().split(".")[-1]))
            made.location = launch.location
            Rewriter.replace_op(launch, made, [])
