// complex
func.func @f(%z: complex<f32>, %n: i32) -> complex<f32> {
  %0 = complex.powi %z, %n : complex<f32>, i32
  %1 = complex.bitcast %0 : complex<f32> to i64
  return %0 : complex<f32>
}
// -----
// complex: abs, add, angle, atan2, bitcast, conj, constant, cos
func.func @f(%l: i64, %z: complex<f32>) {
  %0 = complex.abs %z fastmath<nnan> : complex<f32>
  %1 = complex.add %z, %z fastmath<nnan> {a} : complex<f32>
  %2 = complex.angle %z : complex<f32>
  %3 = complex.atan2 %z, %z : complex<f32>
  %4 = complex.bitcast %z : complex<f32> to i64
  %5 = complex.bitcast %l : i64 to complex<f32>
  %6 = complex.conj %z : complex<f32>
  %7 = complex.constant [1.0 : f32, -2.0 : f32] : complex<f32>
  %8 = complex.constant [0x7F800000 : f32, -2.0 : f32] : complex<f32>
  %9 = complex.cos %z : complex<f32>
  return
}
// -----
// complex: create, div, eq, exp, expm1, im, re, log, log1p, mul
func.func @f(%f: f32, %z: complex<f32>) {
  %0 = complex.create %f, %f : complex<f32>
  %1 = complex.div %z, %z fastmath<arcp> : complex<f32>
  %2 = complex.eq %z, %z : complex<f32>
  %3 = complex.exp %z : complex<f32>
  %4 = complex.expm1 %z : complex<f32>
  %5 = complex.im %z : complex<f32>
  %6 = complex.re %z fastmath<nnan> : complex<f32>
  %7 = complex.log %z : complex<f32>
  %8 = complex.log1p %z : complex<f32>
  %9 = complex.mul %z, %z : complex<f32>
  return
}
// -----
// complex: neg, neq, pow, powi, rsqrt, sign, sin, sqrt, sub
func.func @f(%i: i32, %z: complex<f32>) {
  %0 = complex.neg %z : complex<f32>
  %1 = complex.neq %z, %z : complex<f32>
  %2 = complex.pow %z, %z : complex<f32>
  %3 = complex.powi %z, %i fastmath<nnan> : complex<f32>, i32
  %4 = complex.powi %z, %i : complex<f32>, i32
  %5 = complex.rsqrt %z : complex<f32>
  %6 = complex.sign %z : complex<f32>
  %7 = complex.sin %z : complex<f32>
  %8 = complex.sqrt %z : complex<f32>
  %9 = complex.sub %z, %z : complex<f32>
  return
}
// -----
// complex: tan, tanh, constant
func.func @f(%z: complex<f32>) {
  %0 = complex.tan %z : complex<f32>
  %1 = complex.tanh %z : complex<f32>
  %2 = arith.constant dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>
  return
}
// -----
// complex: attributes beside fast-math flags
func.func @f(%z: complex<f32>, %n: i32) {
  %r0 = complex.powi %z, %n fastmath<nnan> {note} : complex<f32>, i32
  return
}
