// gpu
gpu.module @m {
  gpu.func @k(%a: f32, %o: i32, %w: i32) workgroup(%s: memref<32xf32, #gpu.address_space<workgroup>>) private(%q: memref<1xf32, #gpu.address_space<private>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
    %1 = gpu.block_id y upper_bound 64
    %x = gpu.subgroup_reduce add %a : (f32) -> f32
    %y = gpu.subgroup_reduce mul %x uniform : (f32) -> f32
    %u = gpu.subgroup_reduce add %a cluster(size = 4) : (f32) -> f32
    %z = gpu.all_reduce add %y {} : (f32) -> f32
    gpu.printf "%f\n", %z : f32
    gpu.return
  }
}
// -----
// gpu.launch
func.func @f(%n: index) {
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n) threads(%tx, %ty, %tz) in (%lx = %n, %ly = %n, %lz = %n) {
    gpu.terminator
  }
  return
}
// -----
// gpu functions and exchanges
gpu.module @m [#nvvm.target<chip = "sm_90">, #nvvm.target<O = 3, verifyTarget = false>] attributes {a = 1 : i32} {
  gpu.func @k(%a: f32 {llvm.noundef}, %o: i32, %w: i32) -> () workgroup(%s: memref<32xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}, %s2 : memref<32xf32, #gpu.address_space<workgroup>>) private(%q: memref<1xf32, #gpu.address_space<private>>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_grid_size = array<i32: 12, 1, 1>, known_cluster_size = array<i32: 1, 1, 1>, gpu.known_block_size = array<i32: 128, 1, 1>} {
    %c = arith.constant 0 : index
    %1 = gpu.block_id y upper_bound 64 {x}
    %6 = gpu.subgroup_size upper_bound 32 : index
    %7 = gpu.num_subgroups upper_bound 4 : index
    %8 = gpu.global_id x upper_bound 4
    %9 = gpu.cluster_id x
    %10 = gpu.cluster_dim x
    %12 = gpu.cluster_dim_blocks x
    %x = gpu.subgroup_reduce add %a : (f32) -> f32
    %y = gpu.subgroup_reduce maxnumf %x uniform : (f32) -> f32
    %u = gpu.subgroup_reduce minimumf %a cluster(size = 4) : (f32) -> f32
    %u1 = gpu.subgroup_reduce minsi %o cluster(size = 4, stride = 2) : (i32) -> i32
    %z = gpu.all_reduce add %y {} : (f32) -> f32
    %z1 = gpu.all_reduce add %y uniform {} : (f32) -> f32
    %z2 = gpu.all_reduce %y {
    ^bb(%l: f32, %r: f32):
      %sum = arith.addf %l, %r : f32
      gpu.yield %sum : f32
    } : (f32) -> f32
    gpu.printf "%f %d\n", %z, %o : f32, i32
    gpu.printf "x"
    gpu.return
  }
  gpu.func @g(%x: f32) -> (f32, f32) {
    gpu.return %x, %x : f32, f32
  }
  gpu.func @h(%x: f32) -> f32 attributes {a} {
    cf.br ^bb1
  ^bb1:
    gpu.return %x : f32
  }
  gpu.func @h2() {
    gpu.return
  }
  gpu.func @h3() kernel {
    gpu.return
  }
}
gpu.module @e {
}
// -----
// gpu attributes
module attributes {gpu.container_module, t.a = #gpu.block<x>, t.b = #gpu.thread<y>, t.c = #gpu.warp<z>, t.d = #gpu.warpgroup<linear_dim_0>, t.e = #gpu.lane<linear_dim_9>, t.f = #gpu.memory_space<workgroup>, t.g = #gpu.address_space<global>, t.h = #gpu<shuffle_mode up>, t.i = #gpu<dim x>, t.j = #gpu<all_reduce_op minui>} {
}
// -----
// gpu.launch with clusters and memory
func.func @f(%n: index, %s: i32) {
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n) threads(%tx, %ty, %tz) in (%lx = %n, %ly = %n, %lz = %n) dynamic_shared_memory_size %s workgroup(%w : memref<32xf32, 3>) private(%p: memref<1xf32, 5>) {
    gpu.terminator
  }
  gpu.launch clusters(%cx, %cy, %cz) in (%ccx = %n, %ccy = %n, %ccz = %n) blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n) threads(%tx, %ty, %tz) in (%lx = %n, %ly = %n, %lz = %n) {
    gpu.terminator
  } {note}
  return
}
