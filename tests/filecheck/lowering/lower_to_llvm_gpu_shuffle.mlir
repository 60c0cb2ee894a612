// RUN: xla-emitters-opt -p xla-lower-to-llvm-gpu %s | filecheck %s
// All lanes below the width take part; the clamp is the last lane that may be read, for `up` what PTX wants instead of the first.
// As MLIR 22's convert-gpu-to-nvvm has them once its constants are folded.

// CHECK-LABEL: llvm.func @shuffles
// CHECK-DAG:     %[[ALL:.*]] = llvm.mlir.constant(-1 : i32) : i32
// CHECK-DAG:     %[[HALF:.*]] = llvm.mlir.constant(65535 : i32) : i32
// CHECK-DAG:     %[[ZERO:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-DAG:     %[[C15:.*]] = llvm.mlir.constant(15 : i32) : i32
// CHECK-DAG:     %[[C31:.*]] = llvm.mlir.constant(31 : i32) : i32
// CHECK-DAG:     %[[C16:.*]] = llvm.mlir.constant(16 : i32) : i32
// CHECK:         %[[A:.*]] = nvvm.shfl.sync bfly %[[ALL]], %v, %o, %[[C31]] : f32 -> f32
// CHECK-NEXT:    %[[B:.*]] = nvvm.shfl.sync up %[[ALL]], %[[A]], %o, %[[ZERO]] : f32 -> f32
// CHECK-NEXT:    %[[C:.*]] = nvvm.shfl.sync down %[[HALF]], %[[B]], %o, %[[C15]] : f32 -> f32
// CHECK-NEXT:    %[[D:.*]] = nvvm.shfl.sync idx %[[ALL]], %[[C]], %o, %[[C31]] : f32 -> f32
// CHECK-NEXT:    %[[E:.*]] = nvvm.shfl.sync up %[[HALF]], %[[D]], %o, %[[C16]] : f32 -> f32
// CHECK-NEXT:    llvm.return %[[E]]
func.func @shuffles(%v: f32, %o: i32) -> f32 {
  %w = arith.constant 32 : i32
  %half = arith.constant 16 : i32
  %a, %av = gpu.shuffle xor %v, %o, %w : f32
  %b, %bv = gpu.shuffle up %a, %o, %w : f32
  %c, %cv = gpu.shuffle down %b, %o, %half : f32
  %d, %dv = gpu.shuffle idx %c, %o, %w : f32
  %e, %ev = gpu.shuffle up %d, %o, %half : f32
  func.return %e : f32
}

// Whether there was such a lane comes with the value, when it is asked for.
// CHECK-LABEL: llvm.func @valid
// CHECK:         %[[S:.*]] = nvvm.shfl.sync down %{{.*}}, %v, %o, %{{.*}} {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
// CHECK-NEXT:    %[[V:.*]] = llvm.extractvalue %[[S]][0]
// CHECK-NEXT:    %[[OK:.*]] = llvm.extractvalue %[[S]][1]
// CHECK-NEXT:    llvm.select %[[OK]], %[[V]], %v
func.func @valid(%v: i32, %o: i32) -> i32 {
  %w = arith.constant 32 : i32
  %a, %av = gpu.shuffle down %v, %o, %w : i32
  %r = arith.select %av, %a, %v : i32
  func.return %r : i32
}

// Several results are one struct.
// CHECK-LABEL: llvm.func internal @swap(
// CHECK-SAME:    -> !llvm.struct<(i32, f32)>
// CHECK:         %[[P:.*]] = llvm.mlir.poison : !llvm.struct<(i32, f32)>
// CHECK-NEXT:    %[[Q:.*]] = llvm.insertvalue %b, %[[P]][0]
// CHECK-NEXT:    %[[R:.*]] = llvm.insertvalue %a, %[[Q]][1]
// CHECK-NEXT:    llvm.return %[[R]]
func.func private @swap(%a: f32, %b: i32) -> (i32, f32) {
  func.return %b, %a : i32, f32
}

// CHECK-LABEL: llvm.func @caller
// CHECK:         %[[S:.*]] = llvm.call @swap(%a, %b) : (f32, i32) -> !llvm.struct<(i32, f32)>
// CHECK-NEXT:    %[[I:.*]] = llvm.extractvalue %[[S]][0]
// CHECK-NEXT:    %[[F:.*]] = llvm.extractvalue %[[S]][1]
// CHECK-NEXT:    llvm.return %[[F]]
func.func @caller(%a: f32, %b: i32) -> f32 {
  %r:2 = func.call @swap(%a, %b) : (f32, i32) -> (i32, f32)
  func.return %r#1 : f32
}
