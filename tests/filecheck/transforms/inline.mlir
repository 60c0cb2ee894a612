// RUN: xla-emitters-opt -p inline --split-input-file --print-debuginfo %s | filecheck %s
// RUN: xla-emitters-opt -p inline --split-input-file --remarks %s 2>&1 | filecheck %s --check-prefix REMARK

// The only call of a function: its body moves, the function goes, ops keep their own locations; one without takes the call's.
// CHECK-LABEL: func.func @once
// CHECK-NEXT:    %0 = arith.mulf %x, %x : f32 loc("square")
// CHECK-NEXT:    %1 = arith.negf %0 : f32 loc("call")
// CHECK-NEXT:    return %1 : f32
// CHECK-NOT:     @square
func.func @once(%x: f32) -> f32 {
  %0 = xla_gpu.pure_call @square(%x) : (f32) -> f32 loc("call")
  return %0 : f32
}
func.func private @square(%a: f32) -> f32 {
  %0 = arith.mulf %a, %a : f32 loc("square")
  %1 = arith.negf %0 : f32
  return %1 : f32
}

// -----

// An argument that is returned as it came.
// CHECK-LABEL: func.func @forward
// CHECK-NEXT:    return %y, %x : f32, f32
func.func @forward(%x: f32, %y: f32) -> (f32, f32) {
  %0:2 = xla_gpu.pure_call @swap(%x, %y) : (f32, f32) -> (f32, f32)
  return %0#0, %0#1 : f32, f32
}
func.func private @swap(%a: f32, %b: f32) -> (f32, f32) {
  return %b, %a : f32, f32
}

// -----

// Called twice with other arguments: it stays. A function that only moves data is copied to both places.
// CHECK-LABEL: func.func @twice
// CHECK-COUNT-2: xla_gpu.pure_call @f
// CHECK-COUNT-2: tensor.extract
// CHECK:       func.func private @f
// CHECK-NOT:   func.func private @move
// REMARK:      inline: skipped xla_gpu.pure_call: @f: this region calls it 2 times
func.func @twice(%x: f32, %y: f32, %t: tensor<8xf32>, %i: index, %j: index) -> (f32, f32, f32, f32) {
  %0 = xla_gpu.pure_call @f(%x) : (f32) -> f32
  %1 = xla_gpu.pure_call @f(%y) : (f32) -> f32
  %2 = xla_gpu.pure_call @move(%t, %i) : (tensor<8xf32>, index) -> f32
  %3 = xla_gpu.pure_call @move(%t, %j) : (tensor<8xf32>, index) -> f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}
func.func private @f(%a: f32) -> f32 {
  %0 = math.exp %a : f32
  return %0 : f32
}
func.func private @move(%t: tensor<8xf32>, %i: index) -> f32 attributes {no_compute} {
  %0 = tensor.extract %t[%i] : tensor<8xf32>
  return %0 : f32
}

// -----

// Callees arrive with their own calls inlined.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT:    arith.negf
// CHECK-NEXT:    math.exp
// CHECK-NEXT:    return
// CHECK-NOT:     func.func private
func.func @chain(%x: f32) -> f32 {
  %0 = xla_gpu.pure_call @outer(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @outer(%a: f32) -> f32 {
  %0 = xla_gpu.pure_call @inner(%a) : (f32) -> f32
  %1 = math.exp %0 : f32
  return %1 : f32
}
func.func private @inner(%a: f32) -> f32 {
  %0 = arith.negf %a : f32
  return %0 : f32
}

// -----

// Called from two places: it stays, unless what it calls is called beside it, since both calls are merged then. Here that comes of @b.
// CHECK-LABEL: func.func @shares
// CHECK-NEXT:    %[[T:.*]] = xla_gpu.pure_call @third
// CHECK-NEXT:    math.exp %[[T]]
// CHECK-NEXT:    math.log %[[T]]
// CHECK-LABEL: func.func @other
// CHECK-NEXT:    xla_gpu.pure_call @a
// REMARK:      inline: skipped xla_gpu.pure_call: @a: it has several callers
func.func @shares(%x: f32) -> (f32, f32) {
  %0 = xla_gpu.pure_call @a(%x) : (f32) -> f32
  %1 = xla_gpu.pure_call @b(%x) : (f32) -> f32
  return %0, %1 : f32, f32
}
func.func @other(%x: f32) -> f32 {
  %0 = xla_gpu.pure_call @a(%x) : (f32) -> f32
  return %0 : f32
}
func.func @user_of_a(%x: f32) -> f32 {
  %0 = xla_gpu.pure_call @a(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @a(%v: f32) -> f32 {
  %0 = xla_gpu.pure_call @third(%v) : (f32) -> f32
  %1 = math.exp %0 : f32
  return %1 : f32
}
func.func private @b(%v: f32) -> f32 {
  %0 = xla_gpu.pure_call @third(%v) : (f32) -> f32
  %1 = math.log %0 : f32
  return %1 : f32
}
func.func private @third(%v: f32) -> f32 {
  %0 = math.tanh %v : f32
  return %0 : f32
}

// -----

// Two functions with several callers each stay, though both call a third: it is not called beside them.
// CHECK-LABEL: func.func @share_but_stay
// CHECK-NEXT:    xla_gpu.pure_call @a
// CHECK-NEXT:    xla_gpu.pure_call @b
// CHECK-NEXT:    return
func.func @share_but_stay(%x: f32) -> (f32, f32) {
  %0 = xla_gpu.pure_call @a(%x) : (f32) -> f32
  %1 = xla_gpu.pure_call @b(%x) : (f32) -> f32
  return %0, %1 : f32, f32
}
func.func @other(%x: f32) -> f32 {
  %0 = xla_gpu.pure_call @a(%x) : (f32) -> f32
  return %0 : f32
}
func.func @another(%x: f32) -> f32 {
  %0 = xla_gpu.pure_call @b(%x) : (f32) -> f32
  return %0 : f32
}
func.func private @a(%v: f32) -> f32 {
  %0 = xla_gpu.pure_call @third(%v) : (f32) -> f32
  %1 = math.exp %0 : f32
  return %1 : f32
}
func.func private @b(%v: f32) -> f32 {
  %0 = xla_gpu.pure_call @third(%v) : (f32) -> f32
  %1 = math.log %0 : f32
  return %1 : f32
}
func.func private @third(%v: f32) -> f32 {
  %0 = math.tanh %v : f32
  return %0 : f32
}

// -----

// Two equal calls of which one came with what was inlined are one, and that is inlined too.
// CHECK-LABEL: func.func @merged
// CHECK-NEXT:    %[[N:.*]] = arith.negf %x : f32
// CHECK-NEXT:    %[[S:.*]] = arith.mulf %[[N]], %[[N]] : f32
// CHECK-NEXT:    return %[[N]], %[[S]]
// CHECK-NOT:     func.func private
func.func @merged(%x: f32) -> (f32, f32) {
  %0 = xla_gpu.pure_call @negative(%x) : (f32) -> f32
  %1 = xla_gpu.pure_call @square(%x) : (f32) -> f32
  return %0, %1 : f32, f32
}
func.func private @square(%v: f32) -> f32 {
  %0 = xla_gpu.pure_call @negative(%v) : (f32) -> f32
  %1 = arith.mulf %0, %0 : f32
  return %1 : f32
}
func.func private @negative(%v: f32) -> f32 {
  %0 = arith.negf %v : f32
  return %0 : f32
}

// -----

// Kept: a call that says noinline, a declaration, a function that calls itself through another.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    xla_gpu.pure_call @f(%x) {noinline}
// CHECK-NEXT:    xla_gpu.pure_call @declared
// CHECK-NEXT:    xla_gpu.pure_call @ping
// REMARK-DAG:  skipped xla_gpu.pure_call: @f: the call is marked noinline
// REMARK-DAG:  skipped xla_gpu.pure_call: @declared: the callee has no body
// REMARK-DAG:  skipped xla_gpu.pure_call: @ping: the callee calls itself
func.func @kept(%x: f32) -> (f32, f32, f32) {
  %0 = xla_gpu.pure_call @f(%x) {noinline} : (f32) -> f32
  %1 = xla_gpu.pure_call @declared(%x) : (f32) -> f32
  %2 = xla_gpu.pure_call @ping(%x) : (f32) -> f32
  return %0, %1, %2 : f32, f32, f32
}
func.func private @declared(f32) -> f32
func.func private @f(%a: f32) -> f32 {
  return %a : f32
}
func.func private @ping(%a: f32) -> f32 {
  %0 = xla_gpu.pure_call @pong(%a) : (f32) -> f32
  return %0 : f32
}
func.func private @pong(%a: f32) -> f32 {
  %0 = xla_gpu.pure_call @ping(%a) : (f32) -> f32
  return %0 : f32
}

// -----

// A func.call goes in wherever it stands; not where it or the function says no, or where there is no body. As mlir-opt 22's inline.
// CHECK-LABEL: func.func @calls
// CHECK-NEXT:    %[[A:.*]] = math.exp %x
// CHECK-NEXT:    %[[B:.*]] = math.exp %y
// CHECK-NEXT:    %[[C:.*]] = call @g(%y) {no_inline}
// CHECK-NEXT:    %[[D:.*]] = call @h(%[[C]])
// CHECK-NEXT:    %[[E:.*]] = call @declared(%[[D]])
// CHECK-NEXT:    return %[[A]], %[[B]], %[[E]]
// CHECK:       func.func private @g
// REMARK-DAG:  inline: skipped func.call: @g: the call is marked no_inline
// REMARK-DAG:  inline: skipped func.call: @h: the callee is marked no_inline
// REMARK-DAG:  inline: skipped func.call: @declared: the callee has no body
func.func @calls(%x: f32, %y: f32) -> (f32, f32, f32) {
  %0 = func.call @g(%x) : (f32) -> f32
  %1 = func.call @g(%y) : (f32) -> f32
  %2 = func.call @g(%y) {no_inline} : (f32) -> f32
  %3 = func.call @h(%2) : (f32) -> f32
  %4 = func.call @declared(%3) : (f32) -> f32
  return %0, %1, %4 : f32, f32, f32
}
func.func private @declared(f32) -> f32
func.func private @g(%a: f32) -> f32 {
  %0 = math.exp %a : f32
  return %0 : f32
}
func.func private @h(%a: f32) -> f32 attributes {no_inline} {
  %0 = math.log %a : f32
  return %0 : f32
}

// -----

// A function that only moves data is copied while others call it, and moved by the last one.
func.func @moves(%t: tensor<8xf32>, %i: index, %j: index) -> (f32, f32) {
  %0 = xla_gpu.pure_call @data(%t, %i) : (tensor<8xf32>, index) -> f32
  %1 = xla_gpu.pure_call @data(%t, %j) : (tensor<8xf32>, index) -> f32
  return %0, %1 : f32, f32
}
func.func private @data(%t: tensor<8xf32>, %i: index) -> f32 attributes {no_compute} {
  %0 = tensor.extract %t[%i] : tensor<8xf32>
  return %0 : f32
}
// CHECK-LABEL: @moves
// CHECK-NEXT:    tensor.extract %t[%i]
// CHECK-NEXT:    tensor.extract %t[%j]
// CHECK-NOT:     @data

// -----

// Where nothing is inlined nothing is merged: a call that stays does not cause another round. A public function may have other callers.
func.func @stays(%x: f32) -> (f32, f32, f32, f32) {
  %0 = arith.negf %x : f32
  %1 = arith.negf %x : f32
  %2 = xla_gpu.pure_call @f(%x) {noinline} : (f32) -> f32
  %3 = xla_gpu.pure_call @public(%x) : (f32) -> f32
  return %0, %1, %2, %3 : f32, f32, f32, f32
}
func.func private @f(%a: f32) -> f32 {
  return %a : f32
}
func.func @public(%a: f32) -> f32 {
  %0 = arith.negf %a : f32
  return %0 : f32
}
// CHECK-LABEL: @stays
// CHECK-NEXT:    arith.negf
// CHECK-NEXT:    arith.negf
// CHECK-NEXT:    xla_gpu.pure_call @f(%x) {noinline}
// CHECK-NEXT:    xla_gpu.pure_call @public(%x)
// REMARK:        inline: skipped xla_gpu.pure_call: @public: it is public, so it may have other callers
