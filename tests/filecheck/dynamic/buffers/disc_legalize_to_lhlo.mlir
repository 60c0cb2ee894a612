// RUN: xla-emitters-opt --split-input-file -p disc-legalize-to-lhlo %s | filecheck %s

// A value becomes a buffer of the sizes that its op gives; a size of an argument is asked for once. Their names are attributes.
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x4xf32>
  %a = hlo.abs %x {name = "a"} : tensor<?x4xf32>
  %y = hlo.negate %a {name = "y"} : tensor<?x4xf32>
  hlo.return %y : tensor<?x4xf32>
}
// CHECK-LABEL: func.func @main(%x: memref<?x4xf32, "gpu"> {disc.sizes = ["d0", "4"]}) -> memref<?x4xf32, "gpu"> {
// CHECK-NEXT:    %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT:    %[[N:.*]] = memref.dim %x, %[[ZERO]]
// CHECK-NEXT:    %a = memref.alloc(%[[N]]) {disc.sizes = ["d0", "4"]} : memref<?x4xf32, "gpu">
// CHECK-NEXT:    lmhlo.abs %x -> %a {name = "a"}
// CHECK-NEXT:    %y = memref.alloc(%[[N]]) {disc.sizes = ["d0", "4"]} : memref<?x4xf32, "gpu">
// CHECK-NEXT:    lmhlo.negate %a -> %y {name = "y"}
// CHECK-NEXT:    memref.dealloc %a
// CHECK-NEXT:    return %y

// -----

// A result that is an argument, and one that is another result, are copies.
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<4xf32>
  %a = hlo.abs %x {name = "a"} : tensor<4xf32>
  %t = hlo.tuple %x, %a, %a {name = "t"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tuple<tensor<4xf32>, tensor<4xf32>, tensor<4xf32>>
  hlo.return %t : tuple<tensor<4xf32>, tensor<4xf32>, tensor<4xf32>>
}
// CHECK-LABEL: func.func @main(%x: memref<4xf32, "gpu">)
// CHECK:         lmhlo.abs %x -> %a
// CHECK:         lmhlo.copy %x -> %[[X:.*]] {name = "x.copy"}
// CHECK:         lmhlo.copy %a -> %[[A:.*]] {name = "a.copy"}
// CHECK-NOT:     memref.dealloc
// CHECK:         return %[[X]], %a, %[[A]]

// -----

// A shape operand is numbers that are loaded; a device is the memory of a buffer; sizes of an array are stored.
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?xf32>
  %n = hlo.get_dimension_size %x {dimensions = array<i64: 0>, name = "n"} : (tensor<?xf32>) -> tensor<i32>
  %s = hlo.reshape %n {name = "s", disc.device = "cpu"} : (tensor<i32>) -> tensor<1xi32>
  %y = hlo.dynamic_iota %s {iota_dimension = 0 : i64, name = "y", disc.device = "gpu"} : (tensor<1xi32>) -> tensor<?xf32>
  hlo.return %y : tensor<?xf32>
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[D:.*]] = memref.dim %x
// CHECK:         %n = memref.alloc() : memref<i32, "cpu">
// CHECK-NEXT:    %[[I:.*]] = arith.index_cast %[[D]] : index to i32
// CHECK-NEXT:    memref.store %[[I]], %n[]
// CHECK-NEXT:    %s = memref.alloc() : memref<1xi32, "cpu">
// CHECK-NEXT:    lmhlo.reshape %n -> %s {disc.device = "cpu", name = "s"}
// CHECK-NEXT:    %[[L:.*]] = memref.load %s
// CHECK-NEXT:    %[[SIZE:.*]] = arith.index_cast %[[L]] : i32 to index
// CHECK-NEXT:    %y = memref.alloc(%[[SIZE]]) {disc.sizes = ["d0"]} : memref<?xf32, "gpu">
// CHECK-NEXT:    lmhlo.dynamic_iota %s -> %y

// -----

// Sizes are arithmetic: a sum along the dimension of a concatenation, none of which is written where it is known.
hlo.computation @main entry {
  %x = hlo.parameter 0 {name = "x"} : tensor<?x2xf32>
  %y = hlo.parameter 1 {name = "y"} : tensor<3x2xf32>
  %c = hlo.concatenate %x, %y {dimensions = array<i64: 0>, name = "c"} : (tensor<?x2xf32>, tensor<3x2xf32>) -> tensor<?x2xf32>
  hlo.return %c : tensor<?x2xf32>
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[D:.*]] = memref.dim %x
// CHECK-NEXT:    %[[THREE:.*]] = arith.constant 3 : index
// CHECK-NEXT:    %[[SUM:.*]] = arith.addi %[[D]], %[[THREE]] : index
// CHECK-NEXT:    %c = memref.alloc(%[[SUM]]) {disc.sizes = ["d0 + 3", "2"]}

// -----

// A loop carries buffers that it owns: what it is given are copies, the body frees the old ones and yields new ones.
hlo.computation @less {
  %t = hlo.parameter 0 {name = "t"} : tuple<tensor<i32>, tensor<?xf32>>
  %i = hlo.get_tuple_element %t {index = 0 : i64, name = "i"} : (tuple<tensor<i32>, tensor<?xf32>>) -> tensor<i32>
  %c = hlo.constant {name = "c"} dense<3> : tensor<i32>
  %l = hlo.compare %i, %c {direction = "LT", name = "l"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  hlo.return %l : tensor<i1>
}
hlo.computation @body {
  %t = hlo.parameter 0 {name = "t"} : tuple<tensor<i32>, tensor<?xf32>>
  %i = hlo.get_tuple_element %t {index = 0 : i64, name = "i"} : (tuple<tensor<i32>, tensor<?xf32>>) -> tensor<i32>
  %v = hlo.get_tuple_element %t {index = 1 : i64, name = "v"} : (tuple<tensor<i32>, tensor<?xf32>>) -> tensor<?xf32>
  %n = hlo.add %i, %i {name = "n"} : tensor<i32>
  %r = hlo.tuple %n, %v {name = "r"} : (tensor<i32>, tensor<?xf32>) -> tuple<tensor<i32>, tensor<?xf32>>
  hlo.return %r : tuple<tensor<i32>, tensor<?xf32>>
}
hlo.computation @main entry {
  %i = hlo.parameter 0 {name = "i"} : tensor<i32>
  %v = hlo.parameter 1 {name = "v"} : tensor<?xf32>
  %t = hlo.tuple %i, %v {name = "t"} : (tensor<i32>, tensor<?xf32>) -> tuple<tensor<i32>, tensor<?xf32>>
  %w = hlo.while %t {body = @body, condition = @less, name = "w"} : tuple<tensor<i32>, tensor<?xf32>>
  hlo.return %w : tuple<tensor<i32>, tensor<?xf32>>
}
// CHECK-NOT:   hlo.computation
// CHECK-LABEL: func.func @main
// CHECK:         lmhlo.copy %i -> %[[I:.*]] {name
// CHECK:         lmhlo.copy %v -> %[[V:.*]] {name
// CHECK:         %w:2 = "lmhlo.while"(%[[I]], %[[V]]) ({
// CHECK-NEXT:    ^bb0(%[[A:.*]]: memref<i32, "gpu">, %{{.*}}: memref<?xf32, "gpu">):
// CHECK:           lmhlo.compare %[[A]], %c -> %l
// CHECK-NEXT:      %[[HOLDS:.*]] = memref.load %l[]
// CHECK-NEXT:      memref.dealloc %c
// CHECK-NEXT:      memref.dealloc %l
// CHECK-NEXT:      lmhlo.condition %[[HOLDS]]
// CHECK-NEXT:    }, {
// CHECK-NEXT:    ^bb0(%[[B:.*]]: memref<i32, "gpu">, %[[W:.*]]: memref<?xf32, "gpu">):
// CHECK-NEXT:      %n = memref.alloc()
// CHECK-NEXT:      lmhlo.add %[[B]], %[[B]] -> %n
// CHECK-NEXT:      memref.dealloc %[[B]]
// CHECK-NEXT:      lmhlo.terminator %n, %[[W]]
// CHECK:         return %w#0, %w#1

// -----

// A truth value takes the first branch where it holds: the last of the regions.
hlo.computation @yes {
  %x = hlo.parameter 0 {name = "x"} : tensor<4xf32>
  %a = hlo.abs %x {name = "a"} : tensor<4xf32>
  hlo.return %a : tensor<4xf32>
}
hlo.computation @no {
  %x = hlo.parameter 0 {name = "x"} : tensor<4xf32>
  hlo.return %x : tensor<4xf32>
}
hlo.computation @main entry {
  %p = hlo.parameter 0 {name = "p"} : tensor<i1>
  %x = hlo.parameter 1 {name = "x"} : tensor<4xf32>
  %r = hlo.conditional %p, %x, %x {true_computation = @yes, false_computation = @no, name = "r"} : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  hlo.return %r : tensor<4xf32>
}
// CHECK-LABEL: func.func @main
// CHECK:         %[[LOADED:.*]] = memref.load %p[]
// CHECK-NEXT:    %[[N:.*]] = arith.extui %[[LOADED]] : i1 to i32
// CHECK-NEXT:    %r = "lmhlo.case"(%[[N]]) ({
// CHECK:           lmhlo.copy %x -> %[[COPY:.*]] {name
// CHECK-NEXT:      lmhlo.terminator %[[COPY]]
// CHECK-NEXT:    }, {
// CHECK:           lmhlo.abs %x -> %a
// CHECK-NEXT:      lmhlo.terminator %a
// CHECK:         return %r

// -----

// What a loop reads in every iteration is not carried: its regions use the buffer from around, and nothing frees or copies it.
hlo.computation @less {
  %i = hlo.parameter 0 {name = "i"} : tensor<i32>
  %n = hlo.parameter 1 {name = "n"} : tensor<i32>
  %l = hlo.compare %i, %n {direction = "LT", name = "l"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  hlo.return %l : tensor<i1>
}
hlo.computation @next {
  %i = hlo.parameter 0 {name = "i"} : tensor<i32>
  %n = hlo.parameter 1 {name = "n"} : tensor<i32>
  %s = hlo.add %i, %n {name = "s"} : tensor<i32>
  hlo.return %s : tensor<i32>
}
hlo.computation @main entry {
  %i = hlo.parameter 0 {name = "i"} : tensor<i32>
  %n = hlo.parameter 1 {name = "n"} : tensor<i32>
  %w = hlo.while %i, %n {body = @next, condition = @less, name = "w", disc.captures} : tensor<i32>
  hlo.return %w : tensor<i32>
}
// CHECK-LABEL: func.func @main(%i: memref<i32, "gpu">, %n: memref<i32, "gpu">)
// CHECK:         lmhlo.copy %i -> %[[COPY:.*]] {name
// CHECK-NEXT:    %w = "lmhlo.while"(%[[COPY]]) ({
// CHECK-NEXT:    ^bb0(%[[A:.*]]: memref<i32, "gpu">):
// CHECK:           lmhlo.compare %[[A]], %n -> %l
// CHECK:         }, {
// CHECK-NEXT:    ^bb0(%[[B:.*]]: memref<i32, "gpu">):
// CHECK:           lmhlo.add %[[B]], %n -> %s
// CHECK-NEXT:      memref.dealloc %[[B]]
// CHECK-NEXT:      lmhlo.terminator %s
// CHECK:         return %w
