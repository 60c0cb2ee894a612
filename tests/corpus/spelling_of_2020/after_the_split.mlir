func @f(%2: index, %c0: index, %c1: index, %c256: index, %c32: index, %c256_0: index, %c1_2: index, %c0_1: index) {
  %3 = muli %c1, %c256_0 : index
  %4 = subi %2, %c0 : index
  %5 = addi %4, %3 : index
  %6 = subi %5, %c1_2 : index
  %7 = divi_unsigned %6, %c256_0 : index
  %c1_3 = constant 1 : index
  %8 = cmpi "ne", %7, %c0_1 : index
  loop.if %8 {
    gpu.launch blocks(%arg12, %arg13, %arg14) in (%arg18 = %7, %arg19 = %c1_3, %arg20 = %c1_3) threads(%arg15, %arg16, %arg17) in (%arg21 = %c256_0, %arg22 = %c1_3, %arg23 = %c1_3) {
      %9 = muli %3, %arg12 : index
      %10 = addi %c0, %9 : index
      %11 = muli %3, %arg18 : index
      loop.for %arg24 = %10 to %2 step %11 {
        %12 = addi %arg24, %3 : index
        %13 = cmpi "slt", %2, %12 : index
        %14 = select %13, %2, %12 : index
        %15 = muli %c1, %arg15 : index
        %16 = addi %arg24, %15 : index
        %17 = muli %c1, %arg21 : index
        loop.for %arg25 = %16 to %14 step %17 {
          %18 = remi_signed %arg25, %c256 : index
          %19 = divi_signed %arg25, %c256 : index
          %20 = remi_unsigned %18, %c32 : index
          %21 = divi_unsigned %18, %c32 : index
        }
      }
      gpu.terminator
    }
  }
  return
}
