// RUN: xla-emitters-opt -p xla-gpu-convert-index-type --split-input-file %s | filecheck %s

// 32 bits, as the module says: one cast for each id, none in between, flags gone.
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @address() -> i32 {
    %c4 = arith.constant 4 : index
    %c512 = arith.constant 512 : index
    %t = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
    %b = gpu.block_id x {xla.range = [0 : index, 24575 : index]}
    %0 = arith.muli %t, %c4 overflow<nsw> : index
    %1 = arith.muli %b, %c512 overflow<nsw> : index
    %2 = arith.addi %0, %1 overflow<nsw> : index
    %3 = arith.index_castui %2 : index to i32
    func.return %3 : i32
  }
}
// CHECK-LABEL: func.func @address
// CHECK-NOT:     : index
// CHECK-DAG:     %[[C4:.*]] = arith.constant 4 : i32
// CHECK-DAG:     %[[C512:.*]] = arith.constant 512 : i32
// CHECK:         %[[T:.*]] = gpu.thread_id x
// CHECK-NEXT:    %[[B:.*]] = gpu.block_id x
// CHECK-NEXT:    %[[T32:.*]] = arith.index_cast %[[T]] : index to i32
// CHECK-NEXT:    %[[X:.*]] = arith.muli %[[T32]], %[[C4]] : i32
// CHECK-NEXT:    %[[B32:.*]] = arith.index_cast %[[B]] : index to i32
// CHECK-NEXT:    %[[Y:.*]] = arith.muli %[[B32]], %[[C512]] : i32
// CHECK-NEXT:    %[[S:.*]] = arith.addi %[[X]], %[[Y]] : i32
// CHECK-NEXT:    return %[[S]] : i32

// -----

// 64 bits without a data layout; the cast to i32 is one that cuts off, and stays.
func.func @wide(%x: index) -> i32 {
  %0 = arith.divui %x, %x : index
  %1 = arith.index_cast %0 : index to i32
  func.return %1 : i32
}
// CHECK-LABEL: func.func @wide
// CHECK:         %[[Q:.*]] = arith.divui %{{.*}}, %{{.*}} : i64
// CHECK-NEXT:    %[[I:.*]] = arith.index_cast %[[Q]] : i64 to index
// CHECK-NEXT:    arith.index_cast %[[I]] : index to i32

// -----

// A comparison stays on index, and so does an index that only a loop needs.
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @compared(%x: index, %n: index) -> i1 {
    %c1 = arith.constant 1 : index
    %0 = arith.addi %x, %c1 : index
    %1 = arith.cmpi slt, %0, %n : index
    func.return %1 : i1
  }
}
// CHECK-LABEL: func.func @compared
// CHECK:         %[[S:.*]] = arith.addi %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    %[[I:.*]] = arith.index_cast %[[S]] : i32 to index
// CHECK-NEXT:    arith.cmpi slt, %[[I]], %{{.*}} : index

// -----

// Arithmetic on integers is none of its business.
func.func @integers(%x: i32) -> i32 {
  %0 = arith.addi %x, %x overflow<nsw> : i32
  func.return %0 : i32
}
// CHECK-LABEL: func.func @integers
// CHECK-NEXT:    arith.addi %{{.*}}, %{{.*}} overflow<nsw> : i32
// CHECK-NEXT:    return

// -----

// Casts that meet vanish, whoever made them; one that widens a narrower integer does not.
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @casts(%x: i32, %y: i16) -> (i32, i32) {
    %0 = arith.index_cast %x : i32 to index
    %1 = arith.index_castui %0 : index to i32
    %2 = arith.index_cast %y : i16 to index
    %3 = arith.index_castui %2 : index to i32
    func.return %1, %3 : i32, i32
  }
}
// CHECK-LABEL: func.func @casts
// CHECK-SAME:    %[[X:[a-z0-9]*]]: i32
// CHECK:         %[[I:.*]] = arith.index_cast %{{.*}} : i16 to index
// CHECK-NEXT:    %[[Y:.*]] = arith.index_castui %[[I]] : index to i32
// CHECK-NEXT:    return %[[X]], %[[Y]] : i32, i32

// -----

// An index of 32 bits holds the low bits of a constant.
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @large(%x: index) -> i32 {
    %c = arith.constant 4294967297 : index
    %0 = arith.addi %x, %c : index
    %1 = arith.index_cast %0 : index to i32
    func.return %1 : i32
  }
}
// CHECK-LABEL: func.func @large
// CHECK:         arith.constant 1 : i32

// -----

// One cast of %x, also for the branch, and one back for each result that an access reads; none between the sums.
func.func @border(%x: index, %t: tensor<64xf32>, %c: i1) -> (f32, f32) {
  %c3 = arith.constant 3 : index
  %0 = arith.muli %x, %c3 : index
  %1 = arith.addi %0, %x : index
  %a = tensor.extract %t[%1] : tensor<64xf32>
  %b = tensor.extract %t[%1] : tensor<64xf32>
  %r = scf.if %c -> (f32) {
    %2 = arith.addi %x, %0 : index
    %d = tensor.extract %t[%2] : tensor<64xf32>
    scf.yield %d : f32
  } else {
    scf.yield %b : f32
  }
  func.return %a, %r : f32, f32
}
// CHECK-LABEL: func.func @border
// CHECK-SAME:    (%[[X:[a-z0-9]*]]: index
// CHECK:         %[[I:.*]] = arith.index_cast %[[X]] : index to i64
// CHECK-NEXT:    %[[P:.*]] = arith.muli %[[I]], %{{.*}} : i64
// CHECK-NEXT:    %[[S:.*]] = arith.addi %[[P]], %[[I]] : i64
// CHECK-NEXT:    %[[AT:.*]] = arith.index_cast %[[S]] : i64 to index
// CHECK-NEXT:    tensor.extract %{{.*}}[%[[AT]]]
// CHECK-NEXT:    tensor.extract %{{.*}}[%[[AT]]]
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      %[[T:.*]] = arith.addi %[[I]], %[[P]] : i64
// CHECK-NEXT:      arith.index_cast %[[T]] : i64 to index
// CHECK-NOT:     arith.index_cast

// -----

// A constant that several ops read is converted once; a value that is an integer already is not converted again.
module attributes {dlti.dl_spec = #dlti.dl_spec<#dlti.dl_entry<index, 32 : i32>>} {
  func.func @chain(%x: index) -> i32 {
    %c3 = arith.constant 3 : index
    %0 = arith.muli %x, %c3 : index
    %1 = arith.addi %0, %c3 : index
    %2 = arith.remui %1, %c3 : index
    %3 = arith.index_castui %2 : index to i32
    func.return %3 : i32
  }
}
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    %[[C:.*]] = arith.constant 3 : i32
// CHECK-NEXT:    %[[X:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK-NEXT:    %[[P:.*]] = arith.muli %[[X]], %[[C]] : i32
// CHECK-NEXT:    %[[S:.*]] = arith.addi %[[P]], %[[C]] : i32
// CHECK-NEXT:    %[[R:.*]] = arith.remui %[[S]], %[[C]] : i32
// CHECK-NEXT:    return %[[R]] : i32
