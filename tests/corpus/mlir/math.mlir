// math missing
func.func @f(%a: f32, %lo: f32, %hi: f32) -> (f32, f32, f32, i1, i1, i1, i1) {
  %0 = math.erfc %a : f32
  %1, %2 = math.sincos %a : f32
  %3 = math.clampf %a to [%lo, %hi] : f32
  %4 = math.isnan %a : f32
  %5 = math.isinf %a : f32
  %6 = math.isfinite %a : f32
  %7 = math.isnormal %a : f32
  return %0, %1, %3, %4, %5, %6, %7 : f32, f32, f32, i1, i1, i1, i1
}
// -----
// math: absf, absi, acos, acosh, asin, asinh, atan, atanh, atan2, cbrt
func.func @f(%f: f32, %iv: vector<4xi32>, %fv: vector<4xf32>) {
  %0 = math.absf %f fastmath<fast> {a} : f32
  %1 = math.absi %iv : vector<4xi32>
  %2 = math.acos %fv : vector<4xf32>
  %3 = math.acosh %f : f32
  %4 = math.asin %f : f32
  %5 = math.asinh %f : f32
  %6 = math.atan %f : f32
  %7 = math.atanh %f : f32
  %8 = math.atan2 %f, %f fastmath<nnan> : f32
  %9 = math.cbrt %f : f32
  return
}
// -----
// math: ceil, clampf, copysign, cos, cosh, ctlz, cttz, ctpop, erf, erfc
func.func @f(%i: i32, %f: f32, %iv: vector<4xi32>, %fv: vector<4xf32>) {
  %0 = math.ceil %f : f32
  %1 = math.clampf %fv to [%fv, %fv] fastmath<nnan> : vector<4xf32>
  %2 = math.copysign %f, %f : f32
  %3 = math.cos %f : f32
  %4 = math.cosh %f : f32
  %5 = math.ctlz %i : i32
  %6 = math.cttz %i : i32
  %7 = math.ctpop %iv : vector<4xi32>
  %8 = math.erf %f : f32
  %9 = math.erfc %fv fastmath<nnan> : vector<4xf32>
  return
}
// -----
// math: exp2, exp, expm1, floor, fma, fpowi, ipowi, isfinite
func.func @f(%i: i32, %f: f32, %h: bf16, %iv: vector<4xi32>, %fv: vector<4xf32>) {
  %0 = math.exp2 %f : f32
  %1 = math.exp %f : f32
  %2 = math.expm1 %h : bf16
  %3 = math.floor %f : f32
  %4 = math.fma %f, %f, %f fastmath<contract> : f32
  %5 = math.fma %fv, %fv, %fv : vector<4xf32>
  %6 = math.fpowi %f, %i : f32, i32
  %7 = math.fpowi %fv, %iv fastmath<nnan> : vector<4xf32>, vector<4xi32>
  %8 = math.ipowi %i, %i : i32
  %9 = math.isfinite %f : f32
  return
}
// -----
// math: isinf, isnormal, isnan, log10, log1p, log2, log, powf, round, roundeven
func.func @f(%f: f32, %fv: vector<4xf32>) {
  %0 = math.isinf %fv : vector<4xf32>
  %1 = math.isnormal %f : f32
  %2 = math.isnan %f {a} : f32
  %3 = math.log10 %f : f32
  %4 = math.log1p %f : f32
  %5 = math.log2 %f : f32
  %6 = math.log %f : f32
  %7 = math.powf %f, %f : f32
  %8 = math.round %f : f32
  %9 = math.roundeven %f : f32
  return
}
// -----
// math: rsqrt, sin, sinh, sqrt, tan, tanh, trunc, sincos
func.func @f(%f: f32, %fv: vector<4xf32>, %t: tensor<64xf32>) {
  %0 = math.rsqrt %f : f32
  %1 = math.sin %f : f32
  %2 = math.sinh %f : f32
  %3 = math.sqrt %f : f32
  %4 = math.tan %f : f32
  %5 = math.tanh %f : f32
  %6 = math.trunc %f : f32
  math.sincos %f fastmath<nnan> : f32
  math.sincos %fv : vector<4xf32>
  %9 = math.tanh %t : tensor<64xf32>
  return
}
// -----
// math: attributes beside fast-math flags
func.func @f(%f: f32, %v: vector<4xf32>) {
  %r0 = math.clampf %f to [%f, %f] fastmath<nnan> {note} : f32
  %r1 = math.isnan %v {note} : vector<4xf32>
  return
}
