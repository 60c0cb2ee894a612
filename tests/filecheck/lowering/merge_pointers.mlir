// RUN: xla-emitters-opt -p xla-merge-pointers --split-input-file %s | filecheck %s
// RUN: xla-emitters-opt -p xla-merge-pointers --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// The entry keeps its arguments; the callee, whose second and third arguments are one buffer, loses one.
func.func @main(%a: !llvm.ptr {llvm.align = 16 : index, xla.slice_index = 0 : index},
                %b: !llvm.ptr {xla.slice_index = 1 : index},
                %c: !llvm.ptr {llvm.align = 16 : index, xla.slice_index = 0 : index}) attributes {xla.entry} {
  %x = func.call @f(%b, %a, %c) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> f32
  llvm.store %x, %c : f32, !llvm.ptr
  return
}
func.func private @f(%a: !llvm.ptr {xla.slice_index = 1 : index}, %b: !llvm.ptr {xla.slice_index = 0 : index},
                     %c: !llvm.ptr {xla.slice_index = 0 : index}) -> f32 {
  %x = llvm.load %a : !llvm.ptr -> f32
  %y = llvm.load %b : !llvm.ptr -> f32
  %z = llvm.load %c : !llvm.ptr -> f32
  %s = arith.addf %x, %y : f32
  %t = arith.addf %s, %z : f32
  return %t : f32
}
// CHECK-LABEL: @main
// CHECK-SAME:  (%[[A:[a-z0-9_]+]]: !llvm.ptr {llvm.align = 16 : index, llvm.noalias}, %[[B:[a-z0-9_]+]]: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.align = 16 : index, llvm.noalias}) attributes {xla.entry} {
// CHECK-NEXT:  %[[X:.*]] = call @f(%[[B]], %[[A]]) : (!llvm.ptr, !llvm.ptr) -> f32
// CHECK-NEXT:  llvm.store %[[X]], %[[A]] : f32, !llvm.ptr
// CHECK-LABEL: func.func private @f
// CHECK-SAME:  (%[[A:[a-z0-9_]+]]: !llvm.ptr {llvm.noalias}, %[[B:[a-z0-9_]+]]: !llvm.ptr {llvm.noalias}) -> f32 {
// CHECK-NEXT:  llvm.load %[[A]]
// CHECK-NEXT:  llvm.load %[[B]]
// CHECK-NEXT:  llvm.load %[[B]]

// -----

// The pointer that stands for both is aligned as the better of the two, for the store relies on that.
func.func @aligned(%a: !llvm.ptr {llvm.align = 16 : index, llvm.dereferenceable = 64 : index, xla.slice_index = 0 : index},
                   %b: !llvm.ptr {llvm.align = 256 : index, xla.slice_index = 0 : index}, %v: vector<8xf32>) attributes {xla.entry} {
  llvm.store %v, %b : vector<8xf32>, !llvm.ptr
  return
}
// CHECK-LABEL: @aligned
// CHECK-SAME:  (%[[A:[a-z0-9_]+]]: !llvm.ptr {llvm.align = 256 : index, llvm.dereferenceable = 64 : index, llvm.noalias},
// CHECK-NEXT:  llvm.store %{{.*}}, %[[A]]

// -----

// Something else may write a not_invariant argument: no noalias. Arguments without a slice are left alone.
func.func @shared(%a: !llvm.ptr {xla.not_invariant, xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.invariant, xla.slice_index = 1 : index},
                  %c: !llvm.ptr, %i: i32) attributes {xla.entry} {
  return
}
// CHECK-LABEL: @shared
// CHECK-SAME:  (%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr {llvm.noalias, xla.invariant}, %{{.*}}: !llvm.ptr, %{{.*}}: i32)

// -----

// Tensors are not pointers yet.
func.func @tensors(%a: tensor<4xf32> {xla.slice_index = 0 : index}, %b: tensor<4xf32> {xla.slice_index = 0 : index}) {
  return
}
// CHECK-LABEL: @tensors
// CHECK-SAME:  (%{{.*}}: tensor<4xf32> {xla.slice_index = 0 : index}, %{{.*}}: tensor<4xf32> {xla.slice_index = 0 : index})
// REMARK:      xla-merge-pointers: skipped func.func: argument 0 is tensor<4xf32>, not a pointer

// -----

// A caller between the entry and a callee loses its duplicates first.
func.func private @f(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.slice_index = 0 : index}) {
  return
}
func.func private @g(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.slice_index = 0 : index}) {
  func.call @f(%b, %a) : (!llvm.ptr, !llvm.ptr) -> ()
  return
}
func.func @main(%a: !llvm.ptr {xla.slice_index = 0 : index}) attributes {xla.entry} {
  func.call @g(%a, %a) : (!llvm.ptr, !llvm.ptr) -> ()
  return
}
// CHECK-LABEL: func.func private @f(%{{[a-z]*}}: !llvm.ptr {llvm.noalias}) {
// CHECK-LABEL: func.func private @g(
// CHECK-SAME:    %[[A:[a-z]*]]: !llvm.ptr {llvm.noalias}) {
// CHECK-NEXT:  call @f(%[[A]]) : (!llvm.ptr) -> ()
// CHECK-LABEL: @main(
// CHECK-SAME:    %[[A:[a-z]*]]: !llvm.ptr {llvm.noalias}) attributes {xla.entry} {
// CHECK-NEXT:  call @g(%[[A]]) : (!llvm.ptr) -> ()

// -----

// A public function may have other callers: it keeps its arguments.
func.func @public(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.slice_index = 0 : index}) {
  return
}
// CHECK-LABEL: @public(%{{[a-z]*}}: !llvm.ptr {llvm.noalias}, %{{[a-z]*}}: !llvm.ptr {llvm.noalias})

// -----

// The pointer that stands for both gets no noalias if something else may write through one of them.
func.func private @written(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.not_invariant, xla.slice_index = 0 : index}) {
  return
}
// CHECK-LABEL: func.func private @written(%{{[a-z]*}}: !llvm.ptr) {

// -----

// Functions with branches too.
func.func private @branches(%a: !llvm.ptr {xla.slice_index = 0 : index}, %b: !llvm.ptr {xla.slice_index = 0 : index}, %c: i1) {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  %v = llvm.load %a : !llvm.ptr -> f32
  llvm.store %v, %b : f32, !llvm.ptr
  return
^bb2:
  return
}
// CHECK-LABEL: func.func private @branches(
// CHECK-SAME:    %[[A:[a-z]*]]: !llvm.ptr {llvm.noalias}, %{{[a-z]*}}: i1) {
// CHECK:         %[[V:.*]] = llvm.load %[[A]]
// CHECK-NEXT:    llvm.store %[[V]], %[[A]]
