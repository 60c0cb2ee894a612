llvm.mlir.global internal constant @"40F7E71261729523BBE798C4347EEA1B_i32_2"("40F7E71261729523BBE798C4347EEA1B_i32_2\00")
func @f(%arg0: !llvm<"i8*">, %7017: !llvm<"i8*">, %6979: memref<?x?xf32>, %7018: memref<?x?xf32>, %7019: memref<?x?xf32>, %false: i1) {
%741 = llvm.mlir.addressof @"40F7E71261729523BBE798C4347EEA1B_i32_2" : !llvm<"[39 x i8]*">
%742 = llvm.mlir.constant(0 : index) : !llvm.i64
%743 = llvm.getelementptr %741[%742, %742] : (!llvm<"[39 x i8]*">, !llvm.i64, !llvm.i64) -> !llvm<"i8*">
%744 = call @ral_constant_host_40F7E71261729523BBE798C4347EEA1B_i32_2(%arg0, %743) : (!llvm<"i8*">, !llvm<"i8*">) -> memref<2xi32>
call @ral_gemm___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1___void(%arg0, %7017, %6979, %7018, %7019, %false, %false) : (!llvm<"i8*">, !llvm<"i8*">, memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>, i1, i1) -> ()
return
}
func @ral_constant_host_40F7E71261729523BBE798C4347EEA1B_i32_2(!llvm<"i8*">, !llvm<"i8*">) -> memref<2xi32>
func @ral_gemm___pvoid_pvoid_m2df32_m2df32_m2df32_i1_i1___void(!llvm<"i8*">, !llvm<"i8*">, memref<?x?xf32>, memref<?x?xf32>, memref<?x?xf32>, i1, i1)
