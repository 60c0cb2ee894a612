// RUN: exit 1 xla-emitters-opt -p disc-lhlo-legalize-to-loop %s 2>&1 | filecheck %s
func.func @main(%x: memref<?xf32, "gpu">, %i: memref<i32, "gpu">, %n: index) -> memref<?xf32, "gpu"> {
  %t = memref.alloc(%n) : memref<?xf32, "gpu">
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.reverse %x -> %t {dimensions = array<i64: 0>, name = "t"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.dynamic_update_slice %x, %t, %i -> %x {name = "new"} : (memref<?xf32, "gpu">, memref<?xf32, "gpu">, memref<i32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return %x : memref<?xf32, "gpu">
}
// CHECK:      .mlir:{{[0-9]+:[0-9]+}}: error: [loops] lmhlo.reverse reads the buffer that %new updates in place, in one fusion
// CHECK:      help: leave the update outside, or give it a buffer of its own
