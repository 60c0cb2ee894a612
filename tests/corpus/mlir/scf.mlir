// scf.forall
func.func @f(%t: tensor<128xf32>, %s: tensor<4xf32>) -> tensor<128xf32> {
  %r = scf.forall (%i, %j) in (8, 4) shared_outs(%o = %t) -> (tensor<128xf32>) {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %s into %o[%i] [4] [1] : tensor<4xf32> into tensor<128xf32>
    }
  }
  return %r : tensor<128xf32>
}
// -----
// scf.forall bounds
func.func @f(%n: index) {
  scf.forall (%i) = (0) to (%n) step (4) {
    %c = arith.addi %i, %i : index
  }
  scf.forall (%i, %j) in (%n, 8) {
  } {mapping = [#gpu.block<x>, #gpu.thread<y>]}
  return
}
// -----
// scf unsigned
func.func @f(%n: i32, %m: index) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for unsigned %i = %c0 to %n step %c1 : i32 {
  }
  return
}
// -----
// scf.parallel
func.func @f(%n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) init (%x) -> f32 {
    scf.reduce(%x : f32) {
    ^bb0(%l: f32, %q: f32):
      %s = arith.addf %l, %q : f32
      scf.reduce.return %s : f32
    }
  }
  scf.parallel (%i) = (%c0) to (%n) step (%c1) {
  }
  return %r : f32
}
// -----
// scf others
func.func @f(%n: index, %c: i1) -> i32 {
  %a = arith.constant 1 : i32
  %r = scf.index_switch %n -> i32
  case 2 {
    scf.yield %a : i32
  }
  default {
    scf.yield %a : i32
  }
  %q = scf.execute_region -> i32 {
    cf.br ^bb1(%r : i32)
  ^bb1(%z: i32):
    scf.yield %z : i32
  }
  %w = scf.while (%i = %q) : (i32) -> i32 {
    scf.condition(%c) %i : i32
  } do {
  ^bb0(%j: i32):
    scf.yield %j : i32
  }
  return %w : i32
}
// -----
// scf: for, if, index_switch, execute_region
func.func @f(%x: index, %i: i32, %b: i1, %f: f32) {
  scf.for unsigned %k = %x to %x step %x { }
  %1 = scf.for unsigned %k = %x to %x step %x iter_args(%q = %f) -> (f32) { scf.yield %q : f32 } {a}
  %2 = scf.for %k = %i to %i step %i iter_args(%q = %f) -> (f32) : i32 { scf.yield %q : f32 }
  scf.if %b { } {a}
  scf.if %b -> (f32, i32) { scf.yield %f, %i : f32, i32 } else { scf.yield %f, %i : f32, i32 } {a}
  scf.if %b { } else { }
  scf.index_switch %x case 2 { scf.yield } default { }
  %7 = scf.index_switch %x {a} -> i32 case 2 { scf.yield %i : i32 } case -3 { scf.yield %i : i32 } default { scf.yield %i : i32 }
  scf.execute_region { scf.yield }
  scf.execute_region -> (f32, i32) { scf.yield %f, %i : f32, i32 }
  return
}
// -----
// scf: execute_region, while, parallel, forall
func.func @f(%x: index, %i: i32, %b: i1, %f: f32, %t: tensor<64xf32>) {
  scf.execute_region no_inline { scf.yield }
  %1 = scf.execute_region -> i32 no_inline { scf.yield %i : i32 } {a}
  scf.while : () -> () { scf.condition(%b) } do { scf.yield }
  scf.while (%q = %i) : (i32) -> (i32, f32) { scf.condition(%b) %q, %f : i32, f32 } do { ^bb0(%j: i32, %g: f32): scf.yield %j : i32 } attributes {a}
  scf.parallel (%p) = (%x) to (%x) step (%x) { }
  scf.parallel (%p) = (%x) to (%x) step (%x) { scf.reduce } {a}
  %6 = scf.forall (%k) in (4) shared_outs(%o = %t) -> (tensor<64xf32>) { scf.forall.in_parallel { } }
  return
}
// -----
// scf.forall: bounds that are values, one shared out, attributes
func.func @f(%n: index, %t: tensor<8xf32>) {
  %r0 = scf.forall (%i, %j) in (128, %n) shared_outs(%o = %t) -> (tensor<8xf32>) {
  scf.forall.in_parallel {
    tensor.parallel_insert_slice %t into %o[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
  }
  }
  %r1 = scf.forall (%i) = (%n) to (8) step (2) shared_outs(%o = %t) -> (tensor<8xf32>) {
  scf.forall.in_parallel {
    tensor.parallel_insert_slice %t into %o[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
  }
  }
  %r2 = scf.forall (%i) in (128) shared_outs(%o = %t) -> (tensor<8xf32>) {
  scf.forall.in_parallel {
    tensor.parallel_insert_slice %t into %o[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
  }
  } {note}
  return
}
