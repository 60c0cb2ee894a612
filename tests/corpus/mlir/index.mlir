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
// -----
// index: every op with an attribute that it does not know, every comparison
func.func @f(%a: index, %b: index, %n: i32) {
  %add = index.add %a, %b {note}
  %and = index.and %a, %b {note}
  %maxs = index.maxs %a, %b {note}
  %maxu = index.maxu %a, %b {note}
  %mins = index.mins %a, %b {note}
  %minu = index.minu %a, %b {note}
  %mul = index.mul %a, %b {note}
  %or = index.or %a, %b {note}
  %shl = index.shl %a, %b {note}
  %shrs = index.shrs %a, %b {note}
  %shru = index.shru %a, %b {note}
  %sub = index.sub %a, %b {note}
  %xor = index.xor %a, %b {note}
  %ceildivs = index.ceildivs %a, %b {note}
  %ceildivu = index.ceildivu %a, %b {note}
  %divs = index.divs %a, %b {note}
  %divu = index.divu %a, %b {note}
  %floordivs = index.floordivs %a, %b {note}
  %rems = index.rems %a, %b {note}
  %remu = index.remu %a, %b {note}
  %is_eq = index.cmp eq(%a, %b)
  %is_ne = index.cmp ne(%a, %b)
  %is_slt = index.cmp slt(%a, %b)
  %is_sle = index.cmp sle(%a, %b)
  %is_sgt = index.cmp sgt(%a, %b)
  %is_sge = index.cmp sge(%a, %b)
  %is_ult = index.cmp ult(%a, %b)
  %is_ule = index.cmp ule(%a, %b)
  %is_ugt = index.cmp ugt(%a, %b)
  %is_uge = index.cmp uge(%a, %b)
  %s = index.casts %a {note} : index to i32
  %u = index.castu %n : i32 to index
  %c = index.constant -4
  %t = index.bool.constant true
  %z = index.sizeof {note}
  return
}
