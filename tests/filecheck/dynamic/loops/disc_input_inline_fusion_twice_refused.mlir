// RUN: exit 1 xla-emitters-opt -p disc-input-inline-fusion %s 2>&1 | filecheck %s
func.func @main(%x: memref<3xf32, "gpu">, %z: memref<3xf32, "gpu">) {
  %t = memref.alloc() : memref<3xf32, "gpu">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.abs %x -> %t {name = "t"} : (memref<3xf32, "gpu">) -> memref<3xf32, "gpu">
    lmhlo.negate %t -> %t {name = "again"} : (memref<3xf32, "gpu">) -> memref<3xf32, "gpu">
    scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
      %0 = memref.load %t[%i] : memref<3xf32, "gpu">
      memref.store %0, %z[%i] : memref<3xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK: error: [loops] 'lmhlo.negate' (%again) writes a buffer that is written twice, or read
