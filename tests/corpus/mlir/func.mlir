// func.call_indirect
func.func @f(%c: (i32) -> i32, %n: i32) -> i32 {
  %0 = func.call_indirect %c(%n) : (i32) -> i32
  return %0 : i32
}
