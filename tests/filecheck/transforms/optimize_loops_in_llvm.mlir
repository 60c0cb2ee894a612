// RUN: xla-emitters-opt -p 'xla-gpu-optimize-loops{unroll_in_llvm=true}' --split-input-file %s | filecheck %s

// Four iterations are copied, as without the option.
func.func @short(%a: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %v = %c0 to %c4 step %c1 iter_args(%x = %a) -> (f32) {
    %y = arith.negf %x : f32
    scf.yield %y : f32
  }
  return %r : f32
}
// CHECK-LABEL: @short
// CHECK-NOT:   scf.for
// CHECK-COUNT-4: arith.negf
// CHECK-NOT:   arith.negf

// -----

// Eight iterations would all be copied: they are left to LLVM.
func.func @whole(%a: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %v = %c0 to %c8 step %c1 iter_args(%x = %a) -> (f32) {
    %y = arith.negf %x : f32
    scf.yield %y : f32
  }
  return %r : f32
}
// CHECK-LABEL: @whole
// CHECK:       scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
// CHECK-COUNT-1: arith.negf
// CHECK-NOT:   arith.negf
// CHECK:       } {loop_annotation = #llvm.loop_annotation<unroll = #llvm.loop_unroll<full = true>>}
// CHECK-NEXT:  return

// -----

// 64 iterations of a body of 26: eight at a time, and those are left to LLVM. The number of an iteration is the sum of both loops'.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 7], d1 in [0, 63]">
func.func @partial(%in: tensor<512xf32>, %i: index {xla.range = [0 : index, 7 : index]}, %a: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %v = %c0 to %c64 step %c1 iter_args(%x = %a) -> (f32) {
    %k = xla_gpu.apply_indexing #map(%i, %v)
    %y = tensor.extract %in[%k] : tensor<512xf32>
    %z = arith.addf %x, %y : f32
    %w = math.tanh %z : f32
    %u = arith.negf %w : f32
    %t = arith.negf %u : f32
    scf.yield %t : f32
  }
  return %r : f32
}
// CHECK:       #[[SUM:map[0-9]*]] = #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 56], d1 in [0, 7]">
// CHECK-LABEL: @partial
// CHECK-SAME:  %[[A:[a-z]+]]: f32)
// CHECK:       %[[R:.*]] = scf.for %[[V:.*]] = %c0 to %c64 step %c8 iter_args(%[[X:.*]] = %[[A]]) -> (f32) {
// CHECK:         %[[S:.*]] = scf.for %[[W:.*]] = %c0 to %c8 step %c1 iter_args(%[[Y:.*]] = %[[X]]) -> (f32) {
// CHECK-NEXT:      %[[N:.*]] = xla_gpu.apply_indexing #[[SUM]](%[[V]], %[[W]])
// CHECK-NEXT:      %[[K:.*]] = xla_gpu.apply_indexing #map{{[0-9]*}}(%{{.*}}, %[[N]])
// CHECK-NEXT:      tensor.extract %{{.*}}[%[[K]]]
// CHECK-NEXT:      arith.addf %[[Y]]
// CHECK:           math.tanh
// CHECK-NEXT:      arith.negf
// CHECK-NEXT:      %[[T:.*]] = arith.negf
// CHECK-NEXT:      scf.yield %[[T]] : f32
// CHECK-NEXT:    } {loop_annotation = #llvm.loop_annotation<unroll = #llvm.loop_unroll<full = true>>}
// CHECK-NEXT:    scf.yield %[[S]] : f32
// CHECK-NEXT:  }
// CHECK-NEXT:  return %[[R]]

// -----

// Of a nest of short loops the inner one is copied, the outer one left to LLVM.
func.func @short_nest(%a: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %v = %c0 to %c2 step %c1 iter_args(%x = %a) -> (f32) {
    %s = scf.for %w = %c0 to %c3 step %c1 iter_args(%y = %x) -> (f32) {
      %z = arith.negf %y : f32
      scf.yield %z : f32
    }
    scf.yield %s : f32
  }
  return %r : f32
}
// CHECK-LABEL: @short_nest
// CHECK:       scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK-COUNT-3: arith.negf
// CHECK-NEXT:    scf.yield
// CHECK-NEXT:  } {loop_annotation
// CHECK-NEXT:  return

// -----

// A loop around one that is left to LLVM: 16 copies of 25 fit in 400, as if the inner one had been copied.
func.func @nest(%a: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c24 = arith.constant 24 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %v = %c0 to %c64 step %c1 iter_args(%x = %a) -> (f32) {
    %s = scf.for %w = %c0 to %c24 step %c1 iter_args(%y = %x) -> (f32) {
      %z = arith.negf %y : f32
      scf.yield %z : f32
    }
    scf.yield %s : f32
  }
  return %r : f32
}
// CHECK-LABEL: @nest
// CHECK:       scf.for %{{.*}} = %c0 to %c64 step %c16
// CHECK:         scf.for %{{.*}} = %c0 to %c16
// CHECK:           scf.for %{{.*}} = %c0 to %c24
// CHECK:             scf.yield
// CHECK-NEXT:      } {loop_annotation
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    } {loop_annotation
// CHECK-NEXT:    scf.yield
// CHECK-NEXT:  }
// CHECK-NEXT:  return

// -----

// A function that computes at an index meets the loop's index arithmetic in LLVM only: copied here. One without indices changes nothing.
func.func private @at(%i: index {xla.range = [0 : index, 7 : index]}, %y: f32) -> f32 {
  return %y : f32
}
func.func private @of(%y: f32) -> f32 {
  return %y : f32
}
func.func @calls(%a: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %v = %c0 to %c8 step %c1 iter_args(%x = %a) -> (f32) {
    %y = xla_gpu.pure_call @at(%v, %x) : (index, f32) -> f32
    scf.yield %y : f32
  }
  %s = scf.for %v = %c0 to %c8 step %c1 iter_args(%x = %a) -> (f32) {
    %y = xla_gpu.pure_call @of(%x) : (f32) -> f32
    scf.yield %y : f32
  }
  return %r, %s : f32, f32
}
// CHECK-LABEL: @calls
// CHECK-COUNT-8: xla_gpu.pure_call @at
// CHECK-NOT:   @at
// CHECK:       scf.for
// CHECK-NEXT:    xla_gpu.pure_call @of
// CHECK-NEXT:    scf.yield
// CHECK-NEXT:  } {loop_annotation

// -----

// Loops that are copied here: LLVM would combine what they compute before it copies. `8 * b + v <= 74` asks the same of b for v = 3 to 7.
#sum = #xla_gpu.indexing_map<"(b, v) -> (b * 8 + v), domain: b in [0, 9], v in [0, 7]">
func.func @same_condition(%b: index {xla.range = [0 : index, 9 : index]}, %t: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c74 = arith.constant 74 : index
  %one = arith.constant 1.0 : f32
  %r = scf.for %v = %c0 to %c8 step %c1 iter_args(%u = %t) -> (tensor<8xf32>) {
    %i = xla_gpu.apply_indexing #sum(%b, %v)
    %in = arith.cmpi sle, %i, %c74 : index
    %n = scf.if %in -> (tensor<8xf32>) {
      %w = tensor.insert %one into %u[%v] : tensor<8xf32>
      scf.yield %w : tensor<8xf32>
    } else {
      scf.yield %u : tensor<8xf32>
    }
    scf.yield %n : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
// CHECK-LABEL: @same_condition
// CHECK-NOT:   scf.for
// CHECK-COUNT-8: scf.if
// CHECK-NOT:   scf.if

// -----

// With `b + 4 * v <= 30` all iterations ask different things. The variable is moved to the limit.
#sum = #xla_gpu.indexing_map<"(b, v) -> (b + v * 4), domain: b in [0, 3], v in [0, 7]">
func.func @other_conditions(%b: index {xla.range = [0 : index, 3 : index]}, %t: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c30 = arith.constant 30 : index
  %one = arith.constant 1.0 : f32
  %r = scf.for %v = %c0 to %c8 step %c1 iter_args(%u = %t) -> (tensor<8xf32>) {
    %i = xla_gpu.apply_indexing #sum(%b, %v)
    %in = arith.cmpi sle, %i, %c30 : index
    %n = scf.if %in -> (tensor<8xf32>) {
      %w = tensor.insert %one into %u[%v] : tensor<8xf32>
      scf.yield %w : tensor<8xf32>
    } else {
      scf.yield %u : tensor<8xf32>
    }
    scf.yield %n : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
// CHECK:       #[[B:map[0-9]*]] = #xla_gpu.indexing_map<"(b, v) -> (b), domain: b in [0, 3], v in [0, 7]">
// CHECK:       #[[LIMIT:map[0-9]*]] = #xla_gpu.indexing_map<"(v) -> (v * -4 + 30), domain: v in [0, 7]">
// CHECK-LABEL: @other_conditions
// CHECK:       scf.for %[[V:.*]] = %c0
// CHECK:         %[[LEFT:.*]] = xla_gpu.apply_indexing #[[B]](%b, %[[V]])
// CHECK-NEXT:    %[[RIGHT:.*]] = xla_gpu.apply_indexing #[[LIMIT]](%[[V]])
// CHECK-NEXT:    arith.cmpi sle, %[[LEFT]], %[[RIGHT]] : index
// CHECK:       } {loop_annotation

// -----

// An integer is carried, or a value that a branch decides.
func.func @carried(%a: f32, %n: i32, %c: i1) -> (f32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %v = %c0 to %c8 step %c1 iter_args(%x = %a) -> (f32) {
    %y = scf.if %c -> (f32) {
      %z = arith.negf %x : f32
      scf.yield %z : f32
    } else {
      scf.yield %x : f32
    }
    scf.yield %y : f32
  }
  %s = scf.for %v = %c0 to %c8 step %c1 iter_args(%x = %n) -> (i32) {
    %y = arith.muli %x, %x : i32
    scf.yield %y : i32
  }
  return %r, %s : f32, i32
}
// CHECK-LABEL: @carried
// CHECK-NOT:   scf.for
// CHECK-COUNT-8: scf.if
// CHECK-COUNT-8: arith.muli
