// RUN: exit 1 xla-emitters-opt -p xla-lower-to-llvm-gpu %s 2>&1 | filecheck %s

// What has no lowering is named, never left behind.
func.func @left_over(%x: vector<2xf32>) -> vector<2xf32> {
  %0 = math.tanh %x : vector<2xf32> loc("tanh_0"("gelu.hlo":19:3))
  func.return %0 : vector<2xf32>
}
// CHECK:      gelu.hlo:19:3: error: [xla-lower-to-llvm-gpu] no lowering to LLVM for math.tanh
// CHECK-NEXT: at tanh_0 (gelu.hlo:19:3)
