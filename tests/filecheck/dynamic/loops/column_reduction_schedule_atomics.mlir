// RUN: xla-emitters-opt -p "disc-lhlo-legalize-to-loop{atomics=true}" --split-input-file %s | filecheck %s

// A loop of its own writes the initial value; then each tile of columns is one atomic update a column. No temporary buffer.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @main(%x: memref<?x?xf32, "gpu">, %i: memref<f32, "gpu">, %y: memref<?xf32, "gpu">) {
  "lmhlo.fusion"() <{kind = "kColReduction", fusion_name = "f"}> ({
    lmhlo.reduce %x, %i -> %y {dimensions = array<i64: 0>, name = "y", to_apply = @add} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK-LABEL: func.func @main
// CHECK-NOT:  memref.alloc(%
// CHECK:      scf.parallel (%[[J:.*]]) = (%{{.*}}) to (%{{.*}}) step (%{{.*}}) {
// CHECK-NEXT:   %[[I:.*]] = memref.load %i[]
// CHECK-NEXT:   memref.store %[[I]], %y[%[[J]]]
// CHECK:      } {disc.schedule = "loop"}
// CHECK:      scf.parallel (%tile, %left, %thread)
// CHECK-NOT:    %i[]
// CHECK:        memref.atomic_rmw addf %{{.*}}, %y[%{{.*}}]
// CHECK:      } {disc.schedule = "column"}
// CHECK-NOT:  scf.parallel

// -----

// In a fusion that reduces rows, each element updates the result of its column.
hlo.computation @add {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.add %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @both(%x: memref<?x?xf32, "gpu">, %i: memref<f32, "gpu">, %y: memref<?xf32, "gpu">, %z: memref<?xf32, "gpu">) {
  "lmhlo.fusion"() <{kind = "kRowReduction", fusion_name = "f"}> ({
    lmhlo.reduce %x, %i -> %y {dimensions = array<i64: 1>, name = "y", to_apply = @add} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.reduce %x, %i -> %z {dimensions = array<i64: 0>, name = "z", to_apply = @add} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK-LABEL: func.func @both
// CHECK:        memref.store %{{.*}}, %z[
// CHECK:      } {disc.schedule = "loop"}
// CHECK:        %[[X:.*]] = memref.load %x[%block, %[[J:.*]]]
// CHECK-NEXT:   memref.atomic_rmw addf %[[X]], %z[%[[J]]]
// CHECK-NEXT:   arith.addf %{{.*}}, %[[X]]
// CHECK:      } {disc.schedule = "row1"}

// -----

// No instruction multiplies atomically: two passes, although atomic updates are asked for.
hlo.computation @product {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %r = hlo.multiply %a, %b {name = "r"} : tensor<f32>
  hlo.return %r : tensor<f32>
}
func.func @product_of_columns(%x: memref<?x?xf32, "gpu">, %i: memref<f32, "gpu">, %y: memref<?xf32, "gpu">) {
  "lmhlo.fusion"() <{kind = "kColReduction", fusion_name = "f"}> ({
    lmhlo.reduce %x, %i -> %y {dimensions = array<i64: 0>, name = "y", to_apply = @product} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK-LABEL: func.func @product_of_columns
// CHECK:      %partials = memref.alloc
// CHECK-NOT:  atomic_rmw
