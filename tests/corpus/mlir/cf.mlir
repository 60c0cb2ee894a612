// cf
func.func @f(%c: i1, %n: i32) {
  cf.cond_br %c weights([1, 2000]), ^bb1, ^bb2
^bb1:
  cf.switch %n : i32, [
    default: ^bb2,
    4: ^bb1
  ]
^bb2:
  cf.assert %c, "no"
  return
}
// -----
// cf: assert
func.func @f(%b: i1) {
  cf.assert %b, "no"
  cf.assert %b, "no" {a}
  return
}
