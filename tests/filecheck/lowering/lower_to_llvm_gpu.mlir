// RUN: xla-emitters-opt -p xla-lower-to-llvm-gpu --split-input-file %s | filecheck %s

// The seed's "Conversion to LLVM": the entry is an external kernel with its launch, xla.* attributes are gone, ids carry the range of
// the launch, positions are i32 constants, and bf16 arithmetic stays bf16.
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func private @__nv_tanhf(f32) -> f32
  func.func @fusion(%arg0: !llvm.ptr {llvm.align = 16 : index, llvm.dereferenceable = 25165824 : index, llvm.noalias, xla.invariant, xla.slice_index = 0 : index}, %arg1: !llvm.ptr {llvm.align = 256 : index}) attributes {xla.entry, gpu.known_block_size = array<i32: 128, 1, 1>, gpu.known_grid_size = array<i32: 24576, 1, 1>} {
    %c512_i32 = arith.constant 512 : i32
    %c4_i32 = arith.constant 4 : i32
    %cst = arith.constant 5.000000e-01 : bf16
    %vec = arith.constant dense<0.000000e+00> : vector<4xbf16>
    %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
    %block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]}
    %0 = arith.index_cast %thread_id_x : index to i32
    %1 = arith.muli %0, %c4_i32 : i32
    %2 = arith.index_cast %block_id_x : index to i32
    %3 = arith.muli %2, %c512_i32 : i32
    %4 = arith.addi %1, %3 : i32
    %7 = llvm.getelementptr inbounds %arg0[%4] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
    %8 = llvm.load %7 invariant : !llvm.ptr -> vector<4xbf16>
    %9 = vector.extract %8[0] : bf16 from vector<4xbf16>
    %10 = arith.mulf %9, %cst : bf16
    %11 = arith.extf %10 : bf16 to f32
    %12 = func.call @__nv_tanhf(%11) : (f32) -> f32
    %13 = arith.truncf %12 : f32 to bf16
    %14 = vector.insert %13, %vec [0] : bf16 into vector<4xbf16>
    %15 = llvm.getelementptr inbounds %arg1[%4] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
    llvm.store %14, %15 : vector<4xbf16>, !llvm.ptr
    func.return
  }
}
// CHECK:         llvm.func @__nv_tanhf(f32) -> f32
// CHECK:         llvm.func @fusion(%[[IN:[a-z0-9]*]]: !llvm.ptr {llvm.align = 16 : index, llvm.dereferenceable = 25165824 : index, llvm.noalias}, %[[OUT:[a-z0-9]*]]: !llvm.ptr {llvm.align = 256 : index})
// CHECK-SAME:    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, gpu.known_grid_size = array<i32: 24576, 1, 1>}
// CHECK-DAG:     %[[C512:.*]] = llvm.mlir.constant(512 : i32) : i32
// CHECK-DAG:     %[[C4:.*]] = llvm.mlir.constant(4 : i32) : i32
// CHECK-DAG:     %[[HALF:.*]] = llvm.mlir.constant(5.000000e-01 : bf16) : bf16
// CHECK-DAG:     %[[VEC:.*]] = llvm.mlir.constant(dense<0.000000e+00> : vector<4xbf16>) : vector<4xbf16>
// CHECK-DAG:     %[[C0:.*]] = llvm.mlir.constant(0 : i32) : i32
// CHECK:         %[[T:.*]] = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
// CHECK-NEXT:    %[[B:.*]] = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 24576> : i32
// CHECK-NEXT:    %[[X:.*]] = llvm.mul %[[T]], %[[C4]] : i32
// CHECK-NEXT:    %[[Y:.*]] = llvm.mul %[[B]], %[[C512]] : i32
// CHECK-NEXT:    %[[I:.*]] = llvm.add %[[X]], %[[Y]] : i32
// CHECK-NEXT:    %[[P:.*]] = llvm.getelementptr inbounds %[[IN]][%[[I]]] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
// CHECK-NEXT:    %[[V:.*]] = llvm.load %[[P]] invariant : !llvm.ptr -> vector<4xbf16>
// CHECK-NEXT:    %[[E:.*]] = llvm.extractelement %[[V]][%[[C0]] : i32] : vector<4xbf16>
// CHECK-NEXT:    %[[M:.*]] = llvm.fmul %[[E]], %[[HALF]] : bf16
// CHECK-NEXT:    %[[W:.*]] = llvm.fpext %[[M]] : bf16 to f32
// CHECK-NEXT:    %[[CALL:.*]] = llvm.call @__nv_tanhf(%[[W]]) : (f32) -> f32
// CHECK-NEXT:    %[[N:.*]] = llvm.fptrunc %[[CALL]] : f32 to bf16
// CHECK-NEXT:    %[[R:.*]] = llvm.insertelement %[[N]], %[[VEC]][%[[C0]] : i32] : vector<4xbf16>
// CHECK-NEXT:    %[[Q:.*]] = llvm.getelementptr inbounds %[[OUT]][%[[I]]] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
// CHECK-NEXT:    llvm.store %[[R]], %[[Q]]
// CHECK-NEXT:    llvm.return

// -----

// 64-bit index: special registers are widened, index arithmetic is i64. Ranges that the id does not carry come from the launch.
func.func @wide(%p: !llvm.ptr) attributes {xla.entry, gpu.known_block_size = array<i32: 32, 4, 1>} {
  %t = gpu.thread_id y
  %d = gpu.block_dim x
  %b = gpu.block_id x
  %0 = arith.addi %t, %d : index
  %1 = arith.addi %0, %b : index
  %2 = arith.index_castui %1 : index to i64
  %3 = arith.index_cast %1 : index to i32
  llvm.store %2, %p : i64, !llvm.ptr
  llvm.store %3, %p : i32, !llvm.ptr
  func.return
}
// CHECK-LABEL: llvm.func @wide
// CHECK-SAME:    nvvm.reqntid = array<i32: 32, 4, 1>
// CHECK:         %[[C32:.*]] = llvm.mlir.constant(32 : i64) : i64
// CHECK:         %[[R:.*]] = nvvm.read.ptx.sreg.tid.y range <i32, 0, 4> : i32
// CHECK-NEXT:    %[[T:.*]] = llvm.zext %[[R]] : i32 to i64
// CHECK-NEXT:    %[[R2:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
// CHECK-NEXT:    %[[B:.*]] = llvm.zext %[[R2]] : i32 to i64
// CHECK-NEXT:    %[[S:.*]] = llvm.add %[[T]], %[[C32]] : i64
// CHECK-NEXT:    %[[S2:.*]] = llvm.add %[[S]], %[[B]] : i64
// CHECK-NEXT:    %[[N:.*]] = llvm.trunc %[[S2]] : i64 to i32
// CHECK-NEXT:    llvm.store %[[S2]]
// CHECK-NEXT:    llvm.store %[[N]]

// -----

// A constant is built once, at the start, and flags are carried over.
func.func @arith(%x: i32, %f: f32) -> i1 {
  %a = arith.constant 7 : i32
  %b = arith.constant 7 : i32
  %0 = arith.addi %x, %a overflow<nsw> : i32
  %1 = arith.muli %0, %b overflow<nsw, nuw> : i32
  %2 = arith.addf %f, %f fastmath<nsz> : f32
  %3 = arith.maximumf %2, %f : f32
  %4 = arith.maxsi %1, %x : i32
  %5 = math.absf %3 : f32
  %6 = arith.cmpf ule, %5, %f : f32
  %7 = arith.cmpi ugt, %4, %x : i32
  %8 = arith.andi %6, %7 : i1
  func.return %8 : i1
}
// CHECK-LABEL: llvm.func @arith
// CHECK:         %[[C7:.*]] = llvm.mlir.constant(7 : i32) : i32
// CHECK-NOT:     llvm.mlir.constant
// CHECK:         %[[A:.*]] = llvm.add %{{.*}}, %[[C7]] overflow<nsw> : i32
// CHECK-NEXT:    llvm.mul %[[A]], %[[C7]] overflow<nsw,nuw> : i32
// CHECK-NEXT:    llvm.fadd %{{.*}}, %{{.*}} {fastmathFlags = #llvm.fastmath<nsz>} : f32
// CHECK-NEXT:    llvm.intr.maximum(%{{.*}}, %{{.*}}) : (f32, f32) -> f32
// CHECK-NEXT:    llvm.intr.smax(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
// CHECK-NEXT:    llvm.intr.fabs(%{{.*}}) : (f32) -> f32
// CHECK-NEXT:    llvm.fcmp "ule" %{{.*}}, %{{.*}} : f32
// CHECK-NEXT:    llvm.icmp "ugt" %{{.*}}, %{{.*}} : i32
// CHECK-NEXT:    llvm.and

// -----

// Blocks and jumps; a block argument of type index takes the index width.
func.func @cfg(%n: index, %p: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  cf.br ^head(%c0 : index)
^head(%i: index):
  %0 = arith.cmpi slt, %i, %n : index
  cf.cond_br %0, ^body, ^rest
^body:
  %1 = arith.addi %i, %c1 : index
  cf.br ^head(%1 : index)
^rest:
  func.return
}
// CHECK-LABEL: llvm.func @cfg(
// CHECK-SAME:    %[[N:[a-z0-9]*]]: i64
// CHECK:         llvm.br ^[[HEAD:.*]](%{{.*}} : i64)
// CHECK-NEXT:  ^[[HEAD]](%[[I:.*]]: i64):
// CHECK-NEXT:    %[[C:.*]] = llvm.icmp "slt" %[[I]], %[[N]] : i64
// CHECK-NEXT:    llvm.cond_br %[[C]], ^[[BODY:.*]], ^[[REST:.*]]
// CHECK-NEXT:  ^[[BODY]]:
// CHECK-NEXT:    %[[NEXT:.*]] = llvm.add %[[I]], %{{.*}} : i64
// CHECK-NEXT:    llvm.br ^[[HEAD]](%[[NEXT]] : i64)
// CHECK-NEXT:  ^[[REST]]:
// CHECK-NEXT:    llvm.return

// -----

// vector: positions that are values, from_elements, a broadcast.
func.func @vectors(%v: vector<4xf32>, %i: index, %a: f32) -> vector<2xf32> {
  %0 = vector.extract %v[%i] : f32 from vector<4xf32>
  %1 = vector.insert %a, %v [%i] : f32 into vector<4xf32>
  %2 = vector.from_elements %0, %a : vector<2xf32>
  %3 = vector.broadcast %a : f32 to vector<2xf32>
  %4 = arith.addf %2, %3 : vector<2xf32>
  func.return %4 : vector<2xf32>
}
// CHECK-LABEL: llvm.func @vectors
// CHECK:         llvm.extractelement %{{.*}}[%{{.*}} : i64] : vector<4xf32>
// CHECK-NEXT:    llvm.insertelement %{{.*}}, %{{.*}}[%{{.*}} : i64] : vector<4xf32>
// CHECK-NEXT:    %[[P:.*]] = llvm.mlir.poison : vector<2xf32>
// CHECK-NEXT:    %[[Q:.*]] = llvm.insertelement %{{.*}}, %[[P]][%{{.*}} : i32] : vector<2xf32>
// CHECK-NEXT:    %[[F:.*]] = llvm.insertelement %{{.*}}, %[[Q]][%{{.*}} : i32] : vector<2xf32>
// CHECK-NEXT:    %[[P2:.*]] = llvm.mlir.poison : vector<2xf32>
// CHECK-NEXT:    %[[O:.*]] = llvm.insertelement %{{.*}}, %[[P2]][%{{.*}} : i32] : vector<2xf32>
// CHECK-NEXT:    %[[S:.*]] = llvm.shufflevector %[[O]], %[[P2]] [0, 0] : vector<2xf32>
// CHECK-NEXT:    llvm.fadd %[[F]], %[[S]] : vector<2xf32>

// -----

// A complex number is the struct of its parts, wherever it goes.
func.func private @turned(%z: complex<f32>) -> complex<f32> {
  %0 = complex.re %z : complex<f32>
  %1 = complex.im %z : complex<f32>
  %2 = complex.create %1, %0 : complex<f32>
  func.return %2 : complex<f32>
}
func.func @carried(%p: i1, %a: complex<f32>, %b: complex<f32>) -> complex<f32> {
  %0 = arith.select %p, %a, %b : complex<f32>
  %1 = func.call @turned(%0) : (complex<f32>) -> complex<f32>
  cf.br ^end(%1 : complex<f32>)
^end(%2: complex<f32>):
  func.return %2 : complex<f32>
}
// CHECK-LABEL: llvm.func internal @turned
// CHECK-SAME:    (%[[Z:.*]]: !llvm.struct<(f32, f32)>) -> !llvm.struct<(f32, f32)>
// CHECK:         %[[X:.*]] = llvm.extractvalue %[[Z]][0] : !llvm.struct<(f32, f32)>
// CHECK-NEXT:    %[[Y:.*]] = llvm.extractvalue %[[Z]][1] : !llvm.struct<(f32, f32)>
// CHECK-NEXT:    %[[P:.*]] = llvm.mlir.poison : !llvm.struct<(f32, f32)>
// CHECK-NEXT:    %[[Q:.*]] = llvm.insertvalue %[[Y]], %[[P]][0] : !llvm.struct<(f32, f32)>
// CHECK-NEXT:    %[[R:.*]] = llvm.insertvalue %[[X]], %[[Q]][1] : !llvm.struct<(f32, f32)>
// CHECK-NEXT:    llvm.return %[[R]] : !llvm.struct<(f32, f32)>
// CHECK-LABEL: llvm.func @carried
// CHECK:         %[[S:.*]] = llvm.select %{{.*}} : i1, !llvm.struct<(f32, f32)>
// CHECK-NEXT:    %[[C:.*]] = llvm.call @turned(%[[S]]) : (!llvm.struct<(f32, f32)>) -> !llvm.struct<(f32, f32)>
// CHECK-NEXT:    llvm.br ^[[END:.*]](%[[C]] : !llvm.struct<(f32, f32)>)

// -----

// What is left of `math` for libdevice, where no pass has taken it there before.
func.func @function(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}
// CHECK:       llvm.func @__nv_expf(f32) -> f32
// CHECK-LABEL: llvm.func @function
// CHECK-NEXT:    %[[R:.*]] = llvm.call @__nv_expf(%x) : (f32) -> f32
// CHECK-NEXT:    llvm.return %[[R]] : f32

// -----

// Read from XLA, which has kernels wait for the one before.
func.func @waits() {
  "xla_gpu.pdl_wait"() : () -> ()
  return
}
// CHECK-LABEL: llvm.func @waits
// CHECK-NEXT:    nvvm.griddepcontrol wait
// CHECK-NEXT:    llvm.return

// -----

// Blocks that nothing reaches go.
func.func @unreachable() {
  cf.br ^end
^never(%y: i64):
  cf.br ^never(%y : i64)
^end:
  func.return
}
// CHECK-LABEL: llvm.func @unreachable
// CHECK-NEXT:    llvm.br ^[[END:.*]]
// CHECK-NEXT:  ^[[END]]:
// CHECK-NEXT:    llvm.return

// -----

// Floats of eight bits and fewer are integers: 1.0 of f8E4M3FN is 0x38, -2.0 of f4E2M1FN is 0xC. A bitcast to the integer is nothing any more.
func.func @narrow(%x: f8E4M3FN, %p: i1) -> (i8, vector<2xi4>) {
  %one = arith.constant 1.0 : f8E4M3FN
  %v = arith.constant dense<[1.0, -2.0]> : vector<2xf4E2M1FN>
  %w = vector.bitcast %v : vector<2xf4E2M1FN> to vector<2xi4>
  %s = arith.select %p, %x, %one : f8E4M3FN
  %b = arith.bitcast %s : f8E4M3FN to i8
  %u = arith.addi %w, %w : vector<2xi4>
  cf.br ^end(%u : vector<2xi4>)
^end(%z: vector<2xi4>):
  func.return %b, %z : i8, vector<2xi4>
}
// CHECK-LABEL: llvm.func @narrow(%{{[a-z]*}}: i8, %{{[a-z]*}}: i1)
// CHECK-NEXT:    llvm.mlir.constant(56 : i8) : i8
// CHECK-NEXT:    %[[V:.*]] = llvm.mlir.constant(dense<[2, -4]> : vector<2xi4>) : vector<2xi4>
// CHECK-NEXT:    %[[S:.*]] = llvm.select %{{.*}} : i1, i8
// CHECK-NEXT:    llvm.add %[[V]], %[[V]] : vector<2xi4>
// CHECK:         llvm.insertvalue %[[S]]

// -----

// What is private and has a body is internal, so that LLVM can drop it once it is inlined.
func.func private @declared(f32) -> f32
func.func private @helper(%x: f32) -> f32 { func.return %x : f32 }
func.func private @said() attributes {llvm.linkage = #llvm.linkage<"linkonce_odr">} { func.return }
func.func @kernel() attributes {xla.entry} { func.return }
// CHECK:       llvm.func @declared(f32) -> f32
// CHECK:       llvm.func internal @helper
// CHECK:       llvm.func linkonce_odr @said
// CHECK:       llvm.func @kernel() attributes {nvvm.kernel}

// -----

// Flags of integers and weights of branches reach LLVM.
func.func @flags(%a: i32, %b: i32, %v: vector<4xi1>, %x: vector<4xi32>, %c: i1) -> i32 {
  %0 = arith.shrui %a, %b exact : i32
  %1 = arith.divsi %0, %b exact : i32
  %2 = arith.trunci %1 overflow<nsw> : i32 to i8
  %3 = arith.extui %2 : i8 to i32
  %4 = arith.select %v, %x, %x : vector<4xi1>, vector<4xi32>
  %5 = arith.addi %4, %4 : vector<4xi32>
  cf.cond_br %c weights([1, 2000]), ^bb1, ^bb2
^bb1:
  cf.br ^bb2
^bb2:
  return %3 : i32
}
// CHECK-LABEL: llvm.func @flags
// CHECK-NEXT:    llvm.lshr exact
// CHECK-NEXT:    llvm.sdiv exact
// CHECK-NEXT:    llvm.trunc %{{.*}} overflow<nsw> : i32 to i8
// CHECK-NEXT:    llvm.zext
// CHECK-NEXT:    llvm.select %{{.*}} : vector<4xi1>, vector<4xi32>
// CHECK:         llvm.cond_br %{{.*}} weights([1, 2000]),
