// affine
#map = affine_map<(d0)[s0] -> (d0 + s0, d0 * 2)>
func.func @f(%i: index, %j: index) -> (index, index) {
  %0 = affine.max #map(%i)[%j]
  %1 = affine.min #map(%i)[%j]
  %2 = affine.apply affine_map<(d0) -> (d0 floordiv 8)>(%i)
  return %0, %1 : index, index
}
// -----
// affine: apply, min, max, delinearize_index
func.func @f(%x: index) {
  %0 = affine.apply affine_map<(d0) -> (d0 floordiv 8 + 1)>(%x)
  %1 = affine.apply affine_map<(d0)[s0] -> (d0 mod 8 + s0 ceildiv 2)>(%x)[%x]
  %2 = affine.apply affine_map<()[s0] -> (s0 * 2)>()[%x]
  %3 = affine.apply affine_map<() -> (2)>()
  %4 = affine.apply affine_map<(d0) -> (d0)>(%x) {a}
  %5 = affine.min affine_map<(d0)[s0] -> (d0 + s0, d0 * 2)>(%x)[%x]
  %6 = affine.max affine_map<(d0)[s0] -> (d0 + s0, d0 * 2)>(%x)[%x]
  %7 = affine.max affine_map<(d0) -> (d0, 3)>(%x) {a}
  affine.delinearize_index %x into (8, 8) : index, index
  affine.delinearize_index %x into (%x, 8) : index, index
  return
}
// -----
// affine: delinearize_index, linearize_index, for, load, store, vector_load
func.func @f(%x: index, %f: f32, %m: memref<64xf32>) {
  affine.delinearize_index %x into (8) : index, index
  %1 = affine.linearize_index [%x, %x] by (8, 8) : index
  %2 = affine.linearize_index disjoint [%x, %x] by (%x, 8) : index
  affine.for %k = 0 to 8 { }
  %4 = affine.for %k = 0 to %x step 2 iter_args(%q = %f) -> (f32) { affine.yield %q : f32 }
  affine.for %k = max affine_map<(d0) -> (d0, 2)>(%x) to min affine_map<(d0) -> (d0, 2)>(%x) { }
  %6 = affine.load %m[0] : memref<64xf32>
  affine.store %f, %m[0] : memref<64xf32>
  %8 = affine.vector_load %m[0] : memref<64xf32>, vector<4xf32>
  return
}
// -----
// affine: attributes
func.func @f(%i: index, %j: index) {
  %r0 = affine.max affine_map<(d0)[s0] -> (d0 + s0, 8)>(%i)[%j] {note}
  %r1:3 = affine.delinearize_index %i into (%j, 8) {note} : index, index, index
  %r2 = affine.linearize_index [%i, %j] by (4, %j) : index
  %r3 = affine.linearize_index disjoint [%i, %j] by (8) {note} : index
  return
}
