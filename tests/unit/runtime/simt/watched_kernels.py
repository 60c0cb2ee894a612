"""Kernels of 64 threads a block that write i32, around what a test is about; and one that goes through shared memory, without a fault."""

from unit.runtime.simt.kernels import launch

THREADS = 64


def tensors(body: str, out: int = 128, blocks: int = 1) -> str:
    """A kernel on tensors: %t thread, %b block, %k number among all threads, %out i32[out]; it ends by returning %done."""
    return f"""
func.func @main(%out: tensor<{out}xi32>) -> tensor<{out}xi32> attributes {{xla.entry, {launch(THREADS, blocks)}}} {{
  %t = gpu.thread_id x
  %b = gpu.block_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant {THREADS} : index
  %first = arith.muli %b, %c64 : index
  %k = arith.addi %first, %t : index
  %reversed = arith.subi %c63, %t : index
  %v = arith.index_cast %k : index to i32
{body}
  return %done : tensor<{out}xi32>
}}"""


def pointers(body: str, blocks: int = 1) -> str:
    """The same with pointers: %out, %shared (i32[64]), %t, %b, %k and %reversed, all i32."""
    return f"""
llvm.mlir.global internal @shared() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<64 x i32>
llvm.func @main(%out: !llvm.ptr) attributes {{nvvm.kernel, {launch(THREADS, blocks)}}} {{
  %t = nvvm.read.ptx.sreg.tid.x : i32
  %b = nvvm.read.ptx.sreg.ctaid.x : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c32 = llvm.mlir.constant(32 : i32) : i32
  %c63 = llvm.mlir.constant(63 : i32) : i32
  %c64 = llvm.mlir.constant({THREADS} : i32) : i32
  %first = llvm.mul %b, %c64 : i32
  %k = llvm.add %first, %t : i32
  %reversed = llvm.sub %c63, %t : i32
  %near = llvm.mlir.addressof @shared : !llvm.ptr<3>
  %shared = llvm.addrspacecast %near : !llvm.ptr<3> to !llvm.ptr
  %own = llvm.getelementptr %shared[%t] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %other = llvm.getelementptr %shared[%reversed] : (!llvm.ptr, i32) -> !llvm.ptr, i32
  %result = llvm.getelementptr %out[%k] : (!llvm.ptr, i32) -> !llvm.ptr, i32
{body}
  llvm.return
}}"""


EXCHANGE = tensors("""
  %empty = xla_gpu.allocate_shared : tensor<64xi32>
  %filled = tensor.insert %v into %empty[%t] : tensor<64xi32> loc("copy.1"("t.hlo":3:8))
  %full = xla_gpu.sync_threads %filled : tensor<64xi32>
  %w = tensor.extract %full[%reversed] : tensor<64xi32> loc("transpose.3"("t.hlo":4:8))
  %done = tensor.insert %w into %out[%k] : tensor<128xi32>""")
EXCHANGE_LLVM = pointers("""
  llvm.store %t, %own : i32, !llvm.ptr loc("copy.1"("t.hlo":3:8))
  nvvm.barrier0
  %w = llvm.load %other : !llvm.ptr -> i32 loc("transpose.3"("t.hlo":4:8))
  llvm.store %w, %result : i32, !llvm.ptr""")
