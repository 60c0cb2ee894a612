// index
func.func @f(%a: index, %b: index) -> (index, i1) {
  %0 = index.add %a, %b
  %1 = index.constant 4
  %2 = index.floordivs %0, %1
  %3 = index.cmp slt(%2, %b)
  %4 = index.casts %a : index to i64
  %5 = index.castu %4 : i64 to index
  %6 = index.mul %5, %2
  %7 = index.divu %6, %1
  %8 = index.remu %7, %1
  %9 = index.maxs %8, %1
  %10 = index.sizeof
  %11 = index.bool.constant true
  return %9, %3 : index, i1
}
// -----
// index: add, sub, mul, divs, divu, ceildivs, ceildivu, floordivs, rems, remu
func.func @f(%x: index) {
  %0 = index.add %x, %x
  %1 = index.sub %x, %x {a}
  %2 = index.mul %x, %x
  %3 = index.divs %x, %x
  %4 = index.divu %x, %x
  %5 = index.ceildivs %x, %x
  %6 = index.ceildivu %x, %x
  %7 = index.floordivs %x, %x
  %8 = index.rems %x, %x
  %9 = index.remu %x, %x
  return
}
// -----
// index: maxs, maxu, mins, minu, shl, shrs, shru, and, or, xor
func.func @f(%x: index) {
  %0 = index.maxs %x, %x
  %1 = index.maxu %x, %x
  %2 = index.mins %x, %x
  %3 = index.minu %x, %x
  %4 = index.shl %x, %x
  %5 = index.shrs %x, %x
  %6 = index.shru %x, %x
  %7 = index.and %x, %x
  %8 = index.or %x, %x
  %9 = index.xor %x, %x
  return
}
// -----
// index: casts, castu, cmp, sizeof, constant
func.func @f(%x: index, %i: i32) {
  %0 = index.casts %x : index to i32
  %1 = index.casts %i {a} : i32 to index
  %2 = index.castu %i : i32 to index
  %3 = index.cmp eq(%x, %x)
  %4 = index.cmp ne(%x, %x)
  %5 = index.cmp slt(%x, %x)
  %6 = index.cmp uge(%x, %x) {a}
  %7 = index.sizeof
  %8 = index.sizeof {a}
  %9 = index.constant 4
  return
}
// -----
// index: bool.constant
func.func @f() {
  %0 = index.bool.constant true
  return
}
