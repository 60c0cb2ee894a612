// RUN: exit 1 xla-emitters-opt -p disc-input-inline-fusion %s 2>&1 | filecheck %s
func.func @main(%l: memref<3xi32, "cpu">, %z: memref<3xi32, "gpu">) {
  %t = memref.alloc() : memref<3xi32, "gpu">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  "lmhlo.fusion"() <{kind = "kLoop", fusion_name = "f"}> ({
    lmhlo.h2d %l -> %t {name = "t"} : (memref<3xi32, "cpu">) -> memref<3xi32, "gpu">
    scf.parallel (%i) = (%c0) to (%c3) step (%c1) {
      %0 = memref.load %t[%i] : memref<3xi32, "gpu">
      memref.store %0, %z[%i] : memref<3xi32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK:      .mlir:{{[0-9]+:[0-9]+}}: error: [loops] a kernel reads memref<3xi32, "cpu">, a list of the host, at an index that is not constant
// CHECK:      help: copy it to the device outside of the fusion
