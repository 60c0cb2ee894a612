"""Every row of the table names a function that libdevice has."""

from tools_here import PTX, here, needs

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import func
from xla_emitters.functions import BY_OP, Gpu
from xla_emitters.lowering.convert_math_to_libdevice import ConvertMathToLibdevicePass
from xla_emitters.lowering.lower_to_llvm_gpu import LowerToLlvmGpuPass
from xla_emitters.lowering.toolchain.toolchain import compile_to_ptx

BINARY = ("arith.remf", "math.atan2", "math.powf")


@needs(*PTX)
def test_libdevice_has_every_function() -> None:
    """Each row as f32, f64, bf16 and approximated, called from a kernel: nothing is left undefined in the PTX."""
    kernels: list[str] = []
    for name in [op for op, row in BY_OP.items() if row.gpu is Gpu.LIBDEVICE]:
        for type, flags in (("f32", ""), ("f64", ""), ("bf16", ""), ("f32", " fastmath<afn>")):
            operands, types = ("%x, %x", type) if name in BINARY else ("%x", type)
            if name == "math.fpowi":
                operands, types = "%x, %n", f"{type}, i32"
            kernels.append(f"""
            func.func @k{len(kernels)}(%p: !llvm.ptr, %n: i32) attributes {{xla.entry}} {{
              %x = llvm.load %p : !llvm.ptr -> {type}
              %y = {name} {operands}{flags} : {types}
              llvm.store %y, %p : {type}, !llvm.ptr
              func.return
            }}""")
    module, ctx = parse_ir("\n".join(kernels)), make_context()
    ConvertMathToLibdevicePass().apply(ctx, module)
    called = {op.callee.string_value() for op in module.walk() if isinstance(op, func.CallOp)}
    assert {"__nv_tanh", "__nv_tanhf", "__nv_fast_expf", "__nv_powi"} <= called
    LowerToLlvmGpuPass().apply(ctx, module)
    module.verify()
    assert compile_to_ptx(module, "sm_90", here()).count(".visible .entry") == len(kernels)
