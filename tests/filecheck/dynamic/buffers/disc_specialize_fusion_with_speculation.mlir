// RUN: xla-emitters-opt --split-input-file -p disc-specialize-fusion-with-speculation %s | filecheck %s
// RUN: xla-emitters-opt --split-input-file -p disc-specialize-fusion-with-speculation --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// Four floats are an access: the variant for a number of elements that four divides.
func.func @main(%x: memref<?x?xf32, "gpu">, %n: index, %m: index) -> memref<?x?xf32, "gpu"> {
  %y = memref.alloc(%n, %m) : memref<?x?xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "f", kind = "kLoop"}> ({
    lmhlo.abs %x -> %y {name = "y"} : (memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return %y : memref<?x?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[COUNT:.*]] = arith.muli %n, %m : index
// CHECK-NEXT:    %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-NEXT:    %[[REST:.*]] = arith.remsi %[[COUNT]], %[[FOUR]] : index
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[FITS:.*]] = arith.cmpi eq, %[[REST]], %[[ZERO]] : index
// CHECK-NEXT:    scf.if %[[FITS]] {
// CHECK-NEXT:      "lmhlo.fusion"() <{fusion_name = "f_vec4", kind = "kLoop"}> ({
// CHECK-NEXT:        lmhlo.abs %x -> %y
// CHECK-NEXT:        lmhlo.terminator
// CHECK-NEXT:      }) {disc.device = "gpu", disc.vector = 4 : i64}
// CHECK-NEXT:    } else {
// CHECK-NEXT:      "lmhlo.fusion"() <{fusion_name = "f", kind = "kLoop"}> ({
// CHECK:           }) {disc.device = "gpu"} : ()

// -----

// What is known needs no variant: 32*b is a multiple of eight halves, 5 of nothing.
func.func @main(%x: memref<?x32xf16, "gpu"> {disc.sizes = ["b", "32"]}, %n: index, %z: memref<5xf16, "gpu">) -> (memref<?x32xf16, "gpu">, memref<5xf16, "gpu">) {
  %y = memref.alloc(%n) {disc.sizes = ["b", "32"]} : memref<?x32xf16, "gpu">
  %w = memref.alloc() : memref<5xf16, "gpu">
  "lmhlo.fusion"() <{fusion_name = "f", kind = "kLoop"}> ({
    lmhlo.abs %x -> %y {name = "y"} : (memref<?x32xf16, "gpu">) -> memref<?x32xf16, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  "lmhlo.fusion"() <{fusion_name = "g", kind = "kLoop"}> ({
    lmhlo.abs %z -> %w {name = "w"} : (memref<5xf16, "gpu">) -> memref<5xf16, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return %y, %w : memref<?x32xf16, "gpu">, memref<5xf16, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK-NOT:     scf.if
// CHECK:         }) {disc.device = "gpu", disc.vector = 8 : i64}
// CHECK:         }) {disc.device = "gpu"}
// REMARK: skipped lmhlo.fusion: its elements are not a multiple of 8

// -----

// Rows: a block each for more than 512 columns, a warp each for fewer; no choice where the columns are known.
hlo.computation @sum {
  %a = hlo.parameter 0 {name = "a"} : tensor<f32>
  %b = hlo.parameter 1 {name = "b"} : tensor<f32>
  %s = hlo.add %a, %b {name = "s"} : tensor<f32>
  hlo.return %s : tensor<f32>
}
func.func @main(%x: memref<?x?xf32, "gpu">, %z: memref<?x2049xf32, "gpu">, %i: memref<f32, "gpu">, %n: index) -> (memref<?xf32, "gpu">, memref<?xf32, "gpu">) {
  %y = memref.alloc(%n) : memref<?xf32, "gpu">
  %w = memref.alloc(%n) : memref<?xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "f", kind = "kRowReduction"}> ({
    lmhlo.reduce %x, %i -> %y {name = "y", dimensions = array<i64: 1>, to_apply = @sum} : (memref<?x?xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  "lmhlo.fusion"() <{fusion_name = "g", kind = "kRowReduction"}> ({
    lmhlo.reduce %z, %i -> %w {name = "w", dimensions = array<i64: 1>, to_apply = @sum} : (memref<?x2049xf32, "gpu">, memref<f32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return %y, %w : memref<?xf32, "gpu">, memref<?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[COLUMNS:.*]] = memref.dim %x
// CHECK:         %[[WIDE:.*]] = arith.cmpi sgt, %[[COLUMNS]], %c2048
// CHECK:         %[[SHORT:.*]] = arith.cmpi sle, %{{.*}}, %c512
// CHECK-NEXT:    scf.if %[[WIDE]] {
// CHECK:           %[[REST:.*]] = arith.remsi %[[C:.*]], %c4
// CHECK:           %[[FITS:.*]] = arith.cmpi eq, %[[REST]], %c0
// CHECK-NEXT:      scf.if %[[FITS]] {
// CHECK-NEXT:        fusion_name = "f_row1_vec4"
// CHECK:             {disc.device = "gpu", disc.row_schedule = 1 : i64, disc.vector = 4 : i64}
// CHECK-NEXT:      } else {
// CHECK-NEXT:        fusion_name = "f_row1"
// CHECK:             {disc.device = "gpu", disc.row_schedule = 1 : i64}
// CHECK:         } else {
// CHECK:           scf.if %[[SHORT]] {
// CHECK:             fusion_name = "f_row3_vec4"
// CHECK:             {disc.device = "gpu", disc.row_schedule = 3 : i64, disc.vector = 4 : i64}
// CHECK-NEXT:      } else {
// CHECK-NEXT:        fusion_name = "f_row3"
// CHECK:             {disc.device = "gpu", disc.row_schedule = 3 : i64}
// CHECK:             fusion_name = "f_row2_vec4"
// CHECK:             {disc.device = "gpu", disc.row_schedule = 2 : i64, disc.vector = 4 : i64}
// CHECK-NEXT:      } else {
// CHECK-NEXT:        fusion_name = "f_row2"
// CHECK:             {disc.device = "gpu", disc.row_schedule = 2 : i64}
// CHECK-NOT:     scf.if
// CHECK:         fusion_name = "g"
// CHECK:         {disc.device = "gpu", disc.row_schedule = 1 : i64}

// -----

// The seed's broadcasts: the one that may be a copy is left out where it is, the one that adds a dimension stays.
func.func @fusion(%arg0: memref<?x?xf32, "gpu">, %arg2: memref<?xf32, "gpu">, %shape: memref<2xi32, "cpu">, %n: index, %m: index) -> memref<?x?xf32, "gpu"> {
  %arg1 = memref.alloc(%n, %m) : memref<?x?xf32, "gpu">
  %arg3 = memref.alloc(%n, %m) : memref<?x?xf32, "gpu">
  %arg4 = memref.alloc(%n, %m) : memref<?x?xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "f", kind = "kLoop"}> ({
    lmhlo.dynamic_broadcast_in_dim %arg0, %shape -> %arg1 {name = "a", dimensions = array<i64: 0, 1>} : (memref<?x?xf32, "gpu">, memref<2xi32, "cpu">) -> memref<?x?xf32, "gpu">
    lmhlo.dynamic_broadcast_in_dim %arg2, %shape -> %arg3 {name = "b", dimensions = array<i64: 1>} : (memref<?xf32, "gpu">, memref<2xi32, "cpu">) -> memref<?x?xf32, "gpu">
    lmhlo.add %arg1, %arg3 -> %arg4 {name = "c"} : (memref<?x?xf32, "gpu">, memref<?x?xf32, "gpu">) -> memref<?x?xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  memref.dealloc %arg1 : memref<?x?xf32, "gpu">
  memref.dealloc %arg3 : memref<?x?xf32, "gpu">
  return %arg4 : memref<?x?xf32, "gpu">
}
// CHECK-LABEL: func.func @fusion
// CHECK-DAG:     %[[D0:.*]] = memref.dim %arg0, %c0
// CHECK-DAG:     %[[E0:.*]] = arith.cmpi eq, %[[D0]], %n
// CHECK-DAG:     %[[D1:.*]] = memref.dim %arg0, %c1
// CHECK-DAG:     %[[E1:.*]] = arith.cmpi eq, %[[D1]], %m
// CHECK:         %[[SAME:.*]] = arith.andi %[[E0]], %[[E1]] : i1
// CHECK-NEXT:    scf.if %[[SAME]] {
// CHECK:           fusion_name = "f_same_sizes_vec4"
// CHECK-NEXT:        lmhlo.dynamic_broadcast_in_dim %arg2, %shape -> %arg3
// CHECK-NEXT:        lmhlo.add %arg0, %arg3 -> %arg4
// CHECK-NEXT:        lmhlo.terminator
// CHECK:           fusion_name = "f_same_sizes", kind
// CHECK:         } else {
// CHECK:           fusion_name = "f_vec4"
// CHECK-NEXT:        lmhlo.dynamic_broadcast_in_dim %arg0, %shape -> %arg1
// CHECK-NEXT:        lmhlo.dynamic_broadcast_in_dim %arg2, %shape -> %arg3
// CHECK-NEXT:        lmhlo.add %arg1, %arg3 -> %arg4
// CHECK:           fusion_name = "f", kind

// -----

// A broadcast that is a result stays; a concatenation has no variant by vectors.
func.func @main(%x: memref<?xf32, "gpu">, %shape: memref<1xi32, "cpu">, %n: index, %m: index) -> (memref<?xf32, "gpu">, memref<?xf32, "gpu">) {
  %y = memref.alloc(%n) : memref<?xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "f", kind = "kLoop"}> ({
    lmhlo.dynamic_broadcast_in_dim %x, %shape -> %y {name = "y", dimensions = array<i64: 0>} : (memref<?xf32, "gpu">, memref<1xi32, "cpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  %z = memref.alloc(%m) : memref<?xf32, "gpu">
  "lmhlo.fusion"() <{fusion_name = "g", kind = "kLoop"}> ({
    lmhlo.concatenate %x, %x -> %z {name = "z", dimensions = array<i64: 0>} : (memref<?xf32, "gpu">, memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) {disc.device = "gpu"} : () -> ()
  return %y, %z : memref<?xf32, "gpu">, memref<?xf32, "gpu">
}
// CHECK-LABEL: func.func @main
// CHECK:         scf.if
// CHECK-NEXT:      fusion_name = "f_vec4"
// CHECK-NEXT:        lmhlo.dynamic_broadcast_in_dim
// CHECK-NOT:     scf.if
// CHECK:         fusion_name = "g"
// REMARK: skipped lmhlo.fusion: it has no broadcast between sizes that may be equal
// REMARK: skipped lmhlo.fusion: it concatenates: neighbours may be of different operands

// -----

// Nothing is chosen for a fusion whose loops are written, for one without ops, and for a reduction of rows by name only.
func.func @main(%x: memref<?xf32, "gpu">, %y: memref<?xf32, "gpu">, %n: index, %m: index) {
  "lmhlo.fusion"() <{fusion_name = "written", kind = "kRowReduction"}> ({
    scf.parallel (%i) = (%n) to (%m) step (%n) {
      %v = memref.load %x[%i] : memref<?xf32, "gpu">
      memref.store %v, %y[%i] : memref<?xf32, "gpu">
      scf.reduce
    }
    lmhlo.terminator
  }) : () -> ()
  "lmhlo.fusion"() <{fusion_name = "empty", kind = "kRowReduction"}> ({
    lmhlo.terminator
  }) : () -> ()
  "lmhlo.fusion"() <{fusion_name = "named", kind = "kRowReduction"}> ({
    lmhlo.tanh %x -> %y {name = "t"} : (memref<?xf32, "gpu">) -> memref<?xf32, "gpu">
    lmhlo.terminator
  }) : () -> ()
  return
}
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    "lmhlo.fusion"() <{fusion_name = "written", kind = "kRowReduction"}>
// CHECK:         "lmhlo.fusion"() <{fusion_name = "empty", kind = "kRowReduction"}>
// CHECK:         "lmhlo.fusion"() <{fusion_name = "named", kind = "kRowReduction"}>
// CHECK-NEXT:      lmhlo.tanh %x -> %y
// REMARK-DAG: skipped lmhlo.fusion: its loops are written already
// REMARK-DAG: skipped lmhlo.fusion: it has no op
// REMARK-DAG: skipped lmhlo.fusion: it has no reduction of rows
