// RUN: xla-emitters-opt -p xla-lower-xla-loops-to-scf --split-input-file %s | filecheck %s

// The seed's loop: one scf.for per range variable, the check of all dims inside, one apply_indexing per result with the map's bounds.
// CHECK-DAG:   #[[DIM0:.*]] = #xla_gpu.indexing_map<"(th_x, bl_x)[v] -> (bl_x floordiv 8), domain: th_x in [0, 127], bl_x in [0, 15], v in [0, 3]">
// CHECK-DAG:   #[[DIM1:.*]] = #xla_gpu.indexing_map<"(th_x, bl_x)[v] -> ((bl_x mod 8) * 512 + th_x * 4 + v), domain: th_x in [0, 127], bl_x in [0, 15], v in [0, 3]">
// CHECK-LABEL: func.func @seed
// CHECK:         %xla_loop = scf.for %v = %c0 to %c4 step %c1 iter_args(%iter = %t) -> (tensor<2x4096xf32>) {
// CHECK-NEXT:      %[[A:.*]] = arith.cmpi sge, %th_x, %c0 : index
// CHECK-NEXT:      %[[B:.*]] = arith.cmpi sle, %th_x, %c127 : index
// CHECK-NEXT:      %[[C:.*]] = arith.andi %[[A]], %[[B]] : i1
// CHECK-NEXT:      %[[D:.*]] = arith.cmpi sge, %bl_x, %c0 : index
// CHECK-NEXT:      %[[E:.*]] = arith.cmpi sle, %bl_x, %c15 : index
// CHECK-NEXT:      %[[F:.*]] = arith.andi %[[D]], %[[E]] : i1
// CHECK-NEXT:      %inbounds = arith.andi %[[C]], %[[F]] : i1
// CHECK-NEXT:      %[[R:.*]] = scf.if %inbounds -> (tensor<2x4096xf32>) {
// CHECK-NEXT:        %[[I:.*]] = xla_gpu.apply_indexing #[[DIM0]](%th_x, %bl_x)[%v]
// CHECK-NEXT:        %[[J:.*]] = xla_gpu.apply_indexing #[[DIM1]](%th_x, %bl_x)[%v]
// CHECK-NEXT:        %[[N:.*]] = tensor.insert %x into %iter[%[[I]], %[[J]]] : tensor<2x4096xf32>
// CHECK-NEXT:        scf.yield %[[N]] : tensor<2x4096xf32>
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.yield %iter : tensor<2x4096xf32>
// CHECK-NEXT:      }
// CHECK-NEXT:      scf.yield %[[R]] : tensor<2x4096xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    return %xla_loop
#map = #xla_gpu.indexing_map<"(th_x, bl_x)[v] -> (bl_x floordiv 8, (bl_x mod 8) * 512 + th_x * 4 + v), domain: th_x in [0, 127], bl_x in [0, 15], v in [0, 3]">
func.func @seed(%t: tensor<2x4096xf32>, %x: f32, %th_x: index, %bl_x: index) -> tensor<2x4096xf32> {
  %xla_loop = xla_gpu.loop (%th_x, %bl_x)[%v] -> (%i, %j) in #map iter_args(%iter = %t) -> (tensor<2x4096xf32>) {
    %n = tensor.insert %x into %iter[%i, %j] : tensor<2x4096xf32>
    xla_gpu.yield %n : tensor<2x4096xf32>
  }
  return %xla_loop : tensor<2x4096xf32>
}

// -----

// Two range variables, outermost first, one starting at 2; the constraint is checked before the dim.
// CHECK-LABEL: func.func @constrained
// CHECK:         scf.for %a = %c0 to %c4 step %c1 iter_args
// CHECK-NEXT:      scf.for %b = %c2 to %c6 step %c1 iter_args
// CHECK-NEXT:        %[[SUM:.*]] = xla_gpu.apply_indexing #{{.*}}(%t)[%a, %b]
// CHECK-NEXT:        arith.cmpi sge, %[[SUM]], %c0
// CHECK-NEXT:        arith.cmpi sle, %[[SUM]], %c19
// CHECK:             arith.cmpi sge, %t, %c0
// CHECK-NEXT:        arith.cmpi sle, %t, %c9
// CHECK:             scf.if
#map = #xla_gpu.indexing_map<"(t)[a, b] -> (t * 2 + a + b), domain: t in [0, 9], a in [0, 3], b in [2, 5], t * 2 + a + b in [0, 19]">
func.func @constrained(%t: index, %x: index) -> index {
  %0 = xla_gpu.loop (%t)[%a, %b] -> (%i) in #map iter_args(%p = %x) -> (index) {
    %1 = arith.addi %p, %i : index
    xla_gpu.yield %1 : index
  }
  return %0 : index
}

// -----

// No range variable: only the check. A result that is a variable needs no op, one that nobody uses neither.
// CHECK-LABEL: func.func @no_loop
// CHECK-NOT:     scf.for
// CHECK:         scf.if
// CHECK-NOT:     apply_indexing
// CHECK:         arith.addi %x, %t
#map = #xla_gpu.indexing_map<"(t)[] -> (t, t * 7), domain: t in [0, 9]">
func.func @no_loop(%t: index, %x: index) -> index {
  %0 = xla_gpu.loop (%t)[] -> (%i, %j) in #map iter_args(%p = %x) -> (index) {
    %1 = arith.addi %p, %i : index
    xla_gpu.yield %1 : index
  }
  return %0 : index
}

// -----

// A loop in a loop; one over nothing is its initial value.
// CHECK-LABEL: func.func @nested
// CHECK:         scf.for
// CHECK:           scf.if
// CHECK:             scf.for
// CHECK:               scf.if
// CHECK:         return %{{.*}}, %x : index, index
// CHECK-NOT:     xla_gpu.loop
#map = #xla_gpu.indexing_map<"(t)[a] -> (t + a), domain: t in [0, 9], a in [0, 3]">
#empty = #xla_gpu.indexing_map<"(t)[a] -> (t + a), domain: t in [0, 9], a in [0, -1]">
func.func @nested(%t: index, %x: index) -> (index, index) {
  %0 = xla_gpu.loop (%t)[%a] -> (%i) in #map iter_args(%p = %x) -> (index) {
    %2 = xla_gpu.loop (%t)[%b] -> (%j) in #map iter_args(%q = %p) -> (index) {
      %3 = arith.addi %i, %j : index
      %4 = arith.addi %3, %q : index
      xla_gpu.yield %4 : index
    }
    xla_gpu.yield %2 : index
  }
  %1 = xla_gpu.loop (%t)[%a] -> (%i) in #empty iter_args(%p = %x) -> (index) {
    %2 = arith.addi %i, %p : index
    xla_gpu.yield %2 : index
  }
  return %0, %1 : index, index
}
