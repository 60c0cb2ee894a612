// RUN: xla-emitters-opt -p xla-canonicalize --split-input-file %s | filecheck %s

// Constants stand once, at the entry; sums of constants are one; a constant is the right operand.
// CHECK-LABEL: func.func @constants
// CHECK-NEXT:    %c7 = arith.constant 7 : index
// CHECK-NEXT:    %0 = arith.addi %x, %c7 : index
// CHECK-NEXT:    return %0 : index
func.func @constants(%x: index, %p: i1) -> index {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c4_0 = arith.constant 4 : index
  %0 = arith.addi %c3, %x : index
  %1 = arith.addi %0, %c4 : index
  %2 = arith.muli %c4, %c4_0 : index
  return %1 : index
}

// -----

// bf16 products round once, in bf16: 1.0078125 squared is 1.01568... and lies above the tie.
// CHECK-LABEL: func.func @bf16
// CHECK-NEXT:    %cst = arith.constant 1.015620e+00 : bf16
// CHECK-NEXT:    return %cst : bf16
func.func @bf16() -> bf16 {
  %a = arith.constant 1.0078125 : bf16
  %0 = arith.mulf %a, %a : bf16
  return %0 : bf16
}

// -----

// The maximum with -inf is the other operand, and so is the minimum with inf, NaN too. The maximum with inf is not.
// CHECK-LABEL: func.func @extrema
// CHECK:         %[[MAX:.*]] = arith.maximumf %x, %{{.*}} : f32
// CHECK-NEXT:    return %x, %x, %[[MAX]] : f32, f32, f32
func.func @extrema(%x: f32) -> (f32, f32, f32) {
  %low = arith.constant 0xFF800000 : f32
  %high = arith.constant 0x7F800000 : f32
  %0 = arith.maximumf %low, %x : f32
  %1 = arith.minimumf %x, %high : f32
  %2 = arith.maximumf %x, %high : f32
  return %0, %1, %2 : f32, f32, f32
}

// -----

// A truth value that is extended twice is extended once, with zeros; as a float it is compared as what it was. An i32 is not: it is rounded.
// CHECK-LABEL: func.func @conversions
// CHECK:         %[[WIDE:.*]] = arith.extui %c : i1 to i32
// CHECK-NEXT:    %[[FLOAT:.*]] = arith.uitofp %x : i32 to f32
// CHECK-NEXT:    %[[LARGE:.*]] = arith.cmpf ogt, %[[FLOAT]], %{{.*}} : f32
// CHECK-NEXT:    %[[IS:.*]] = arith.cmpi ugt, %c, %{{.*}} : i1
// CHECK-NEXT:    return %[[WIDE]], %[[LARGE]], %[[IS]] : i32, i1, i1
func.func @conversions(%c: i1, %x: i32) -> (i32, i1, i1) {
  %zero = arith.constant 0.0 : f32
  %large = arith.constant 16777216.0 : f32
  %0 = arith.extui %c : i1 to i8
  %1 = arith.extsi %0 : i8 to i32
  %2 = arith.uitofp %x : i32 to f32
  %3 = arith.cmpf ogt, %2, %large : f32
  %4 = arith.sitofp %0 : i8 to f32
  %5 = arith.cmpf ogt, %4, %zero : f32
  return %1, %3, %5 : i32, i1, i1
}

// -----

// x + 0.0 is not x (it turns -0.0 into 0.0); x * 1.0 and x + -0.0 are.
// CHECK-LABEL: func.func @zeros
// CHECK:         %[[SUM:.*]] = arith.addf %x, %{{.*}} : f32
// CHECK-NEXT:    return %[[SUM]], %x, %x : f32, f32, f32
func.func @zeros(%x: f32) -> (f32, f32, f32) {
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant -0.0 : f32
  %one = arith.constant 1.0 : f32
  %0 = arith.addf %x, %zero : f32
  %1 = arith.addf %x, %minus : f32
  %2 = arith.mulf %x, %one : f32
  return %0, %1, %2 : f32, f32, f32
}

// -----

// A decided branch is one of its sides, also with results; a branch that yields one value twice is that value.
// CHECK-LABEL: func.func @branches
// CHECK-NEXT:    %[[CALL:.*]] = call @effect() : () -> f32
// CHECK-NEXT:    return %[[CALL]], %y : f32, f32
func.func private @effect() -> f32
func.func @branches(%c: i1, %x: f32, %y: f32) -> (f32, f32) {
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %less = arith.cmpi slt, %c1, %c2 : i32
  %0 = scf.if %less -> (f32) {
    %2 = func.call @effect() : () -> f32
    scf.yield %2 : f32
  } else {
    scf.yield %x : f32
  }
  %1 = scf.if %c -> (f32) {
    scf.yield %y : f32
  } else {
    scf.yield %y : f32
  }
  return %0, %1 : f32, f32
}

// -----

// Inside a side of a branch, the same condition is known.
// CHECK-LABEL: func.func @nested
// CHECK-NEXT:    %[[R:.*]] = scf.if %c -> (f32) {
// CHECK-NEXT:      scf.yield %x : f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %y : f32
// CHECK-NEXT:    }
func.func @nested(%c: i1, %x: f32, %y: f32) -> f32 {
  %0 = scf.if %c -> (f32) {
    %1 = scf.if %c -> (f32) {
      scf.yield %x : f32
    } else {
      scf.yield %y : f32
    }
    scf.yield %1 : f32
  } else {
    scf.yield %y : f32
  }
  return %0 : f32
}

// -----

// A loop that runs once is its body, one that never runs is its initial value.
// CHECK-LABEL: func.func @trips
// CHECK-NEXT:    %c3 = arith.constant 3 : index
// CHECK-NEXT:    %[[T:.*]] = tensor.insert %x into %t[%c3] : tensor<8xf32>
// CHECK-NEXT:    return %[[T]], %t : tensor<8xf32>, tensor<8xf32>
func.func @trips(%t: tensor<8xf32>, %x: f32) -> (tensor<8xf32>, tensor<8xf32>) {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %once = scf.for %i = %c3 to %c4 step %c4 iter_args(%a = %t) -> (tensor<8xf32>) {
    %0 = tensor.insert %x into %a[%i] : tensor<8xf32>
    scf.yield %0 : tensor<8xf32>
  }
  %never = scf.for %i = %c4 to %c3 step %c4 iter_args(%a = %t) -> (tensor<8xf32>) {
    %0 = tensor.insert %x into %a[%i] : tensor<8xf32>
    scf.yield %0 : tensor<8xf32>
  }
  return %once, %never : tensor<8xf32>, tensor<8xf32>
}

// -----

// A carried value that never changes is its initial value, one that nobody reads is dropped. The loop whose value does change stays.
// CHECK-LABEL: func.func @carried
// CHECK:         %[[L:.*]] = scf.for %{{.*}} = %c0 to %n step %c1 iter_args(%[[A:.*]] = %x) -> (f32) {
// CHECK-NEXT:      %[[S:.*]] = arith.addf %[[A]], %y : f32
// CHECK-NEXT:      scf.yield %[[S]] : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[L]], %y : f32, f32
func.func @carried(%n: index, %x: f32, %y: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y, %c = %x) -> (f32, f32, f32) {
    %1 = arith.addf %a, %b : f32
    scf.yield %1, %b, %y : f32, f32, f32
  }
  return %0#0, %0#1 : f32, f32
}

// -----

// Casts of constants, comparisons of equal operands, selects.
// CHECK-LABEL: func.func @decided
// CHECK-NEXT:    %c255_i32 = arith.constant 255 : i32
// CHECK-NEXT:    %true = arith.constant true
// CHECK-NEXT:    return %c255_i32, %true, %c : i32, i1, i1
func.func @decided(%c: i1, %x: i32) -> (i32, i1, i1) {
  %m1 = arith.constant -1 : i8
  %0 = arith.extui %m1 : i8 to i32
  %1 = arith.cmpi ule, %x, %x : i32
  %true = arith.constant true
  %false = arith.constant false
  %2 = arith.select %c, %true, %false : i1
  return %0, %1, %2 : i32, i1, i1
}

// -----

// Not folded: an element of a vector at a dynamic position, though the position is a constant (unrolled loops look like this), the
// element just put into a tensor, a comparison that depends on how wide an index is.
// CHECK-LABEL: func.func @kept
// CHECK:         vector.extract %v[%c0] : f32 from vector<4xf32>
// CHECK:         tensor.insert
// CHECK:         tensor.extract
// CHECK:         arith.cmpi sgt, %large, %c0 : index
func.func @kept(%v: vector<4xf32>, %t: tensor<8xf32>) -> (f32, i1) {
  %c0 = arith.constant 0 : index
  %large = arith.constant 2147483649 : index
  %0 = vector.extract %v[%c0] : f32 from vector<4xf32>
  %1 = tensor.insert %0 into %t[%c0] : tensor<8xf32>
  %2 = tensor.extract %1[%c0] : tensor<8xf32>
  %3 = arith.cmpi sgt, %large, %c0 : index
  return %2, %3 : f32, i1
}

// -----

// Branches on one condition, one behind the other, are one: what the first gave is known on each side of the second. Insertions into a
// vector come after.
// CHECK-LABEL: func.func @combined
// CHECK:         %[[R:sides]]:2 = scf.if %c -> (f32, f32) {
// CHECK-NEXT:      %[[A:.*]] = arith.negf %x : f32
// CHECK-NEXT:      %[[B:.*]] = arith.addf %[[A]], %y : f32
// CHECK-NEXT:      scf.yield %[[A]], %[[B]] : f32, f32
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[C:.*]] = arith.mulf %y, %x : f32
// CHECK-NEXT:      scf.yield %y, %[[C]] : f32, f32
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[V:.*]] = vector.insert %[[R]]#0, %v [%c0] : f32 into vector<2xf32>
// CHECK-NEXT:    %[[W:.*]] = vector.insert %[[R]]#1, %[[V]] [%c1] : f32 into vector<2xf32>
// CHECK-NEXT:    return %[[W]]
func.func @combined(%c: i1, %x: f32, %y: f32, %v: vector<2xf32>) -> vector<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %sides = scf.if %c -> (f32) {
    %1 = arith.negf %x : f32
    scf.yield %1 : f32
  } else {
    scf.yield %y : f32
  }
  %2 = vector.insert %sides, %v [%c0] : f32 into vector<2xf32>
  %3 = scf.if %c -> (f32) {
    %4 = arith.addf %sides, %y : f32
    scf.yield %4 : f32
  } else {
    %5 = arith.mulf %sides, %x : f32
    scf.yield %5 : f32
  }
  %6 = vector.insert %3, %2 [%c1] : f32 into vector<2xf32>
  return %6 : vector<2xf32>
}

// -----

// A side that only one of them has stays.
// CHECK-LABEL: func.func @combined_effects
// CHECK-NEXT:    scf.if %c {
// CHECK-NEXT:      func.call @one() : () -> ()
// CHECK-NEXT:      func.call @two() : () -> ()
// CHECK-NEXT:    } else {
// CHECK-NEXT:      func.call @three() : () -> ()
// CHECK-NEXT:    }
// CHECK-NEXT:    return
func.func private @one()
func.func private @two()
func.func private @three()
func.func @combined_effects(%c: i1) {
  scf.if %c {
    func.call @one() : () -> ()
  }
  scf.if %c {
    func.call @two() : () -> ()
  } else {
    func.call @three() : () -> ()
  }
  return
}

// -----

// Not where something else stands between, nor where the second looks at the vector.
// CHECK-LABEL: func.func @not_combined
// CHECK-COUNT-3:  scf.if %c
func.func @not_combined(%c: i1, %x: f32, %y: f32, %v: vector<2xf32>) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %0 = scf.if %c -> (f32) {
    %1 = arith.negf %x : f32
    scf.yield %1 : f32
  } else {
    scf.yield %y : f32
  }
  %2 = vector.insert %0, %v [%c0] : f32 into vector<2xf32>
  %3 = scf.if %c -> (f32) {
    %4 = vector.reduction <add>, %2 : vector<2xf32> into f32
    scf.yield %4 : f32
  } else {
    scf.yield %x : f32
  }
  %5 = arith.addf %3, %y : f32
  %6 = scf.if %c -> (f32) {
    scf.yield %5 : f32
  } else {
    scf.yield %x : f32
  }
  return %3, %6 : f32, f32
}

// -----

// An element of a vector is what was put there last, or what every element was; else it is read.
// CHECK-LABEL: func.func @elements
// CHECK-NEXT:    %[[READ:.*]] = vector.extract %v[%i] : f32 from vector<4xf32>
// CHECK-NEXT:    return %x, %y, %[[READ]] : f32, f32, f32
func.func @elements(%x: f32, %y: f32, %v: vector<4xf32>, %i: index) -> (f32, f32, f32) {
  %c1 = arith.constant 1 : index
  %0 = vector.broadcast %y : f32 to vector<4xf32>
  %1 = vector.insert %x, %0 [%c1] : f32 into vector<4xf32>
  %2 = vector.insert %y, %1 [2] : f32 into vector<4xf32>
  %3 = vector.extract %2[1] : f32 from vector<4xf32>
  %4 = vector.extract %2[%c1] : f32 from vector<4xf32>
  %5 = vector.extract %2[3] : f32 from vector<4xf32>
  %6 = vector.extract %v[%i] : f32 from vector<4xf32>
  return %4, %5, %6 : f32, f32, f32
}

// -----

// Not behind an insertion at a place that only the run knows.
// CHECK-LABEL: func.func @element_unknown
// CHECK:         %[[V:.*]] = vector.insert %x, %{{.*}} [%i]
// CHECK-NEXT:    vector.extract %[[V]][1]
func.func @element_unknown(%x: f32, %v: vector<4xf32>, %i: index) -> f32 {
  %0 = vector.insert %x, %v [1] : f32 into vector<4xf32>
  %1 = vector.insert %x, %0 [%i] : f32 into vector<4xf32>
  %2 = vector.extract %1[1] : f32 from vector<4xf32>
  return %2 : f32
}

// -----

// A switch on a constant is one of its cases, a region of one block stands where it runs.
// CHECK-LABEL: func.func @switch
// CHECK-NEXT:    %[[N:.*]] = arith.negf %x : f32
// CHECK-NEXT:    return %[[N]], %y : f32, f32
func.func @switch(%x: f32, %y: f32) -> (f32, f32) {
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %0 = scf.index_switch %c1 -> f32
  case 1 {
    scf.yield %x : f32
  }
  default {
    scf.yield %y : f32
  }
  %1 = scf.index_switch %c5 -> f32
  case 1 {
    scf.yield %x : f32
  }
  default {
    scf.yield %y : f32
  }
  %2 = scf.execute_region -> f32 {
    %3 = arith.negf %0 : f32
    scf.yield %3 : f32
  }
  return %2, %1 : f32, f32
}

// -----

// A loop between one number and itself does not run, nor does anything happen to one whose start is not known.
// CHECK-LABEL: func.func @bounds
// CHECK-NEXT:    %c1 =
// CHECK-NEXT:    %c4 =
// CHECK-NEXT:    %[[R:.*]] = scf.for %{{.*}} = %n to %c4
// CHECK:         return %x, %[[R]]
func.func @bounds(%x: f32, %n: index) -> (f32, f32) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %0 = scf.for %i = %n to %n step %c1 iter_args(%a = %x) -> (f32) {
    %2 = arith.negf %a : f32
    scf.yield %2 : f32
  }
  %1 = scf.for %i = %n to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    %2 = arith.negf %a : f32
    scf.yield %2 : f32
  }
  return %0, %1 : f32, f32
}

// -----

// Between blocks: a decided branch, and the block that it never takes.
// CHECK-LABEL: func.func @blocks
// CHECK-NEXT:    arith.addi %x, %x
// CHECK-NOT:     arith.muli
// CHECK:         return
func.func @blocks(%x: i32) -> i32 {
  %true = arith.constant true
  cf.cond_br %true, ^a, ^b
^a:
  %0 = arith.addi %x, %x : i32
  cf.br ^c(%0 : i32)
^b:
  %1 = arith.muli %x, %x : i32
  cf.br ^c(%1 : i32)
^c(%p: i32):
  return %p : i32
}

// -----

// A sum of complex constants is exact in wider numbers; a product rounds each product of parts, so it stays.
// CHECK-LABEL: func.func @complex_constants
// CHECK-NOT:     complex.add
// CHECK:         complex.mul
func.func @complex_constants() -> (complex<f32>, complex<f32>) {
  %a = complex.constant [1.0 : f32, 127.0 : f32] : complex<f32>
  %b = complex.constant [-2.325000047683716 : f32, -2.36899995803833 : f32] : complex<f32>
  %sum = complex.add %a, %b : complex<f32>
  %product = complex.mul %a, %b : complex<f32>
  return %sum, %product : complex<f32>, complex<f32>
}

// -----

// What is made of bits is made before they are extended, if both are extended alike.
// CHECK-LABEL: func.func @extended
// CHECK-NEXT:    %[[X:.*]] = arith.extui %b : i1 to i8
// CHECK-NEXT:    %[[A:.*]] = arith.andi %a, %b : i1
// CHECK-NEXT:    %[[O:.*]] = arith.ori %[[A]], %b : i1
// CHECK-NEXT:    %[[W:.*]] = arith.extsi %{{.*}} : i1 to i8
// CHECK-NEXT:    %[[D:.*]] = arith.xori %[[W]], %[[X]] : i8
// CHECK-NEXT:    return %[[O]], %[[D]] : i1, i8
func.func @extended(%a: i1, %b: i1) -> (i1, i8) {
  %0 = arith.extui %a : i1 to i8
  %1 = arith.extui %b : i1 to i8
  %2 = arith.andi %0, %1 : i8
  %3 = arith.ori %2, %1 : i8
  %4 = arith.trunci %3 : i8 to i1
  %5 = arith.extsi %a : i1 to i8
  %6 = arith.xori %5, %1 : i8
  return %4, %6 : i1, i8
}

// -----

// Selections between constants are bits, and nothing is selected by what is not.
// CHECK-LABEL: func.func @selections
// CHECK-NEXT:    %[[TRUE:.*]] = arith.constant true
// CHECK-NEXT:    %[[ONE:.*]] = arith.extui %c : i1 to i32
// CHECK-NEXT:    %[[NOT:.*]] = arith.xori %c, %[[TRUE]] : i1
// CHECK-NEXT:    %[[ZERO:.*]] = arith.extui %[[NOT]] : i1 to i32
// CHECK-NEXT:    %[[GE:.*]] = arith.cmpi sge, %a, %b : i32
// CHECK-NEXT:    %[[X:.*]] = arith.select %c, %b, %a : i32
// CHECK-NEXT:    return %[[ONE]], %[[ZERO]], %[[GE]], %[[X]], %c : i32, i32, i1, i32, i1
func.func @selections(%a: i32, %b: i32, %c: i1) -> (i32, i32, i1, i32, i1) {
  %true = arith.constant true
  %1 = arith.constant 1 : i32
  %0 = arith.constant 0 : i32
  %one = arith.select %c, %1, %0 : i32
  %zero = arith.select %c, %0, %1 : i32
  %less = arith.cmpi slt, %a, %b : i32
  %ge = arith.xori %less, %true : i1
  %not = arith.xori %c, %true : i1
  %x = arith.select %not, %a, %b : i32
  %wide = arith.extui %c : i1 to i32
  %bit = arith.cmpi ne, %wide, %0 : i32
  return %one, %zero, %ge, %x, %bit : i32, i32, i1, i32, i1
}

// -----

// A region that asks to be kept is kept.
func.func @region(%a: i32) -> (i32, i32) {
  %r = scf.execute_region -> i32 no_inline {
    %b = arith.muli %a, %a : i32
    scf.yield %b : i32
  }
  %s = scf.execute_region -> i32 {
    %b = arith.addi %a, %a : i32
    scf.yield %b : i32
  }
  return %r, %s : i32, i32
}
// CHECK-LABEL: @region
// CHECK-NEXT:    scf.execute_region -> i32 no_inline {
// CHECK-NEXT:      arith.muli
// CHECK:         }
// CHECK-NEXT:    arith.addi
// CHECK-NOT:     scf.execute_region

// -----

// A conversion that rounds otherwise than to nearest even is not folded.
func.func @rounded() -> (bf16, bf16, bf16) {
  %a = arith.constant 1.001 : f32
  %n = arith.truncf %a : f32 to bf16
  %e = arith.truncf %a to_nearest_even : f32 to bf16
  %u = arith.truncf %a upward : f32 to bf16
  return %n, %e, %u : bf16, bf16, bf16
}
// CHECK-LABEL: @rounded
// CHECK:         %[[C:.*]] = arith.constant 1.000000e+00 : bf16
// CHECK-NEXT:    %[[U:.*]] = arith.truncf %{{.*}} upward : f32 to bf16
// CHECK-NEXT:    return %[[C]], %[[C]], %[[U]]

// -----

// A loop that counts unsigned still does without its unused value.
func.func @unsigned(%out: tensor<4xi32>) -> i32 {
  %low = arith.constant 0 : i8
  %high = arith.constant -6 : i8
  %step = arith.constant 50 : i8
  %zero = arith.constant 0 : i32
  %sum, %unused = scf.for unsigned %i = %low to %high step %step iter_args(%a = %zero, %b = %zero) -> (i32, i32) : i8 {
    %wide = arith.extui %i : i8 to i32
    %next = arith.addi %a, %wide : i32
    scf.yield %next, %b : i32, i32
  }
  return %sum : i32
}
// CHECK-LABEL: @unsigned
// CHECK:         %{{.*}} = scf.for unsigned %{{.*}} iter_args(%{{[a-z]*}} = %{{.*}}) -> (i32) : i8 {
