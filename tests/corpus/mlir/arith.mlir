// arith.index_castui
func.func @f(%i: index, %n: i32, %v: vector<4xindex>) -> (i32, index, vector<4xi32>) {
  %0 = arith.index_castui %i : index to i32
  %1 = arith.index_castui %n : i32 to index
  %2 = arith.index_castui %v : vector<4xindex> to vector<4xi32>
  return %0, %1, %2 : i32, index, vector<4xi32>
}
// -----
// arith.remf
func.func @f(%a: f32, %b: f32) -> f32 {
  %0 = arith.remf %a, %b : f32
  %1 = arith.remf %a, %0 fastmath<nnan> : f32
  return %1 : f32
}
// -----
// arith exact shifts
func.func @f(%a: i32, %b: i32) -> i32 {
  %0 = arith.shrsi %a, %b exact : i32
  %1 = arith.shrui %0, %b exact : i32
  %2 = arith.divsi %1, %b exact : i32
  %3 = arith.divui %2, %b exact : i32
  return %3 : i32
}
// -----
// arith.select vector cond
func.func @f(%c: vector<4xi1>, %a: vector<4xf32>, %b: vector<4xf32>, %s: i1) -> vector<4xf32> {
  %0 = arith.select %c, %a, %b : vector<4xi1>, vector<4xf32>
  %1 = arith.select %s, %0, %b : vector<4xf32>
  return %1 : vector<4xf32>
}
// -----
// arith.truncf rounding
func.func @f(%a: f32) -> bf16 {
  %0 = arith.truncf %a to_nearest_even : f32 to bf16
  %1 = arith.truncf %a toward_zero : f32 to bf16
  %2 = arith.truncf %a fastmath<nnan> : f32 to bf16
  %3 = arith.addf %0, %1 : bf16
  return %3 : bf16
}
// -----
// arith.trunci overflow
func.func @f(%a: i32) -> i8 {
  %0 = arith.trunci %a overflow<nsw, nuw> : i32 to i8
  %1 = arith.trunci %a : i32 to i8
  return %0 : i8
}
// -----
// arith rest
func.func @f(%a: i32, %b: i32, %f: f32, %g: f32) -> (i32, i32) {
  %0, %1 = arith.addui_extended %a, %b : i32, i1
  %2, %3 = arith.mulsi_extended %a, %b : i32
  %4, %5 = arith.mului_extended %a, %b : i32
  %6 = arith.bitcast %f : f32 to i32
  return %2, %3 : i32, i32
}
// -----
// arith misc
func.func @f(%a: i32, %b: i32, %f: f32, %g: f32) -> (i32, f32) {
  %0, %1 = arith.addui_extended %a, %b : i32, i1
  %2 = arith.ceildivsi %a, %b : i32
  %3 = arith.ceildivui %a, %b : i32
  %4 = arith.floordivsi %a, %b : i32
  %5 = arith.maximumf %f, %g : f32
  %6 = arith.minnumf %f, %5 : f32
  %7 = arith.addi %2, %3 overflow<nsw> : i32
  %8 = arith.addi %7, %4 : i32
  return %8, %6 : i32, f32
}
// -----
// arith: constant, addi, subi
func.func @f(%i: i32, %iv: vector<4xi32>, %xv: vector<4xindex>, %ti: tensor<4xi32>) {
  %0 = arith.constant dense<1> : vector<4xi32>
  %1 = arith.constant dense<[1, -1]> : tensor<2xindex>
  %2 = arith.constant {xla.range = [0 : index, 4 : index]} 3 : index
  %3 = arith.constant true
  %4 = arith.constant dense<true> : vector<4xi1>
  %5 = arith.constant 1.0 : f8E4M3FN
  %6 = arith.addi %i, %i overflow<nsw, nuw> {a} : i32
  %7 = arith.addi %iv, %iv : vector<4xi32>
  %8 = arith.addi %ti, %ti : tensor<4xi32>
  %9 = arith.subi %xv, %xv : vector<4xindex>
  return
}
// -----
// arith: shli, shrsi, shrui, divsi, divui, remsi, remui, ceildivsi, andi
func.func @f(%i: i32, %b: i1, %iv: vector<4xi32>) {
  %0 = arith.shli %i, %i overflow<nsw> : i32
  %1 = arith.shli %iv, %iv : vector<4xi32>
  %2 = arith.shrsi %iv, %iv exact : vector<4xi32>
  %3 = arith.shrui %iv, %iv : vector<4xi32>
  %4 = arith.divsi %i, %i exact {a} : i32
  %5 = arith.divui %iv, %iv : vector<4xi32>
  %6 = arith.remsi %i, %i : i32
  %7 = arith.remui %iv, %iv : vector<4xi32>
  %8 = arith.ceildivsi %iv, %iv : vector<4xi32>
  %9 = arith.andi %b, %b : i1
  return
}
// -----
// arith: addui_extended, mulsi_extended, mului_extended, addf, remf, negf, maximumf, maxnumf, cmpi
func.func @f(%x: index, %f: f32, %iv: vector<4xi32>, %fv: vector<4xf32>) {
  arith.addui_extended %iv, %iv : vector<4xi32>, vector<4xi1>
  arith.mulsi_extended %iv, %iv : vector<4xi32>
  arith.mului_extended %x, %x {a} : index
  %3 = arith.addf %f, %f fastmath<nnan,contract> {a} : f32
  %4 = arith.remf %fv, %fv : vector<4xf32>
  %5 = arith.negf %f fastmath<nnan> : f32
  %6 = arith.negf %fv {a} : vector<4xf32>
  %7 = arith.maximumf %fv, %fv : vector<4xf32>
  %8 = arith.maxnumf %f, %f fastmath<nnan> : f32
  %9 = arith.cmpi slt, %iv, %iv : vector<4xi32>
  return
}
// -----
// arith: cmpi, cmpf, select, extf
func.func @f(%x: index, %i: i32, %b: i1, %f: f32, %h: bf16, %bv: vector<4xi1>, %fv: vector<4xf32>, %t: tensor<64xf32>, %ti: tensor<4xi32>) {
  %0 = arith.cmpi ult, %i, %i {a} : i32
  %1 = arith.cmpi eq, %x, %x : index
  %2 = arith.cmpi eq, %ti, %ti : tensor<4xi32>
  %3 = arith.cmpf olt, %fv, %fv : vector<4xf32>
  %4 = arith.cmpf olt, %f, %f fastmath<nnan> {a} : f32
  %5 = arith.select %bv, %fv, %fv : vector<4xi1>, vector<4xf32>
  %6 = arith.select %b, %f, %f {a} : f32
  %7 = arith.select %b, %t, %t : tensor<64xf32>
  %8 = arith.select %b, %fv, %fv {a} : vector<4xf32>
  %9 = arith.extf %h : bf16 to f32
  return
}
// -----
// arith: extf, truncf, scaling_extf, scaling_truncf, extsi, extui
func.func @f(%c: i8, %f: f32, %h: bf16, %f8: f8E8M0FNU, %iv: vector<4xi32>, %bv: vector<4xi1>, %fv: vector<4xf32>, %hv: vector<4xbf16>) {
  %0 = arith.extf %h fastmath<nnan> : bf16 to f32
  %1 = arith.extf %hv {a} : vector<4xbf16> to vector<4xf32>
  %2 = arith.truncf %f fastmath<nnan> : f32 to bf16
  %3 = arith.truncf %fv upward : vector<4xf32> to vector<4xbf16>
  %4 = arith.scaling_extf %h, %f8 : bf16, f8E8M0FNU to f32
  %5 = arith.scaling_truncf %f, %f8 : f32, f8E8M0FNU to f8E4M3FN
  %6 = arith.extsi %c : i8 to i32
  %7 = arith.extsi %iv : vector<4xi32> to vector<4xi64>
  %8 = arith.extui %iv : vector<4xi32> to vector<4xi64>
  %9 = arith.extui %bv : vector<4xi1> to vector<4xi8>
  return
}
// -----
// arith: extui, trunci, sitofp, uitofp, fptosi, fptoui, index_cast
func.func @f(%i: i32, %iv: vector<4xi32>, %xv: vector<4xindex>, %fv: vector<4xf32>, %ti: tensor<4xi32>) {
  %0 = arith.extui %ti {a} : tensor<4xi32> to tensor<4xi64>
  %1 = arith.trunci %iv overflow<nsw> : vector<4xi32> to vector<4xi8>
  %2 = arith.trunci %i {a} : i32 to i8
  %3 = arith.sitofp %iv : vector<4xi32> to vector<4xf32>
  %4 = arith.uitofp %iv : vector<4xi32> to vector<4xf32>
  %5 = arith.sitofp %ti : tensor<4xi32> to tensor<4xf32>
  %6 = arith.fptosi %fv : vector<4xf32> to vector<4xi32>
  %7 = arith.fptoui %fv : vector<4xf32> to vector<4xi32>
  %8 = arith.index_cast %xv : vector<4xindex> to vector<4xi32>
  %9 = arith.index_cast %iv : vector<4xi32> to vector<4xindex>
  return
}
// -----
// arith: index_cast, index_castui, bitcast
func.func @f(%x: index, %h: bf16, %iv: vector<4xi32>, %fv: vector<4xf32>) {
  %0 = arith.index_cast %x {a} : index to i32
  %1 = arith.index_castui %iv : vector<4xi32> to vector<4xindex>
  %2 = arith.bitcast %fv : vector<4xf32> to vector<4xi32>
  %3 = arith.bitcast %h : bf16 to i16
  return
}
// -----
// arith: attributes beside fast-math flags; numbers that need their bits
func.func @f(%f: f32, %h: bf16, %s: f8E8M0FNU) {
  %r0 = arith.remf %f, %f fastmath<nnan> {note} : f32
  %r1 = arith.scaling_extf %h, %s fastmath<nnan> {note} : bf16, f8E8M0FNU to f32
  %r2 = arith.scaling_truncf %f, %s toward_zero fastmath<nnan> : f32, f8E8M0FNU to f8E4M3FN
  %r3 = arith.constant 0xFF800000 : f32
  %r4 = arith.constant 4.467770e-02 : bf16
  return
}
