module @jit_special_functions attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x8xf32>) -> (tensor<5x8xf32> {jax.result_info = "result[0]"}, tensor<5x8xf32> {jax.result_info = "result[1]"}, tensor<5x8xf32> {jax.result_info = "result[2]"}, tensor<5x8xf32> {jax.result_info = "result[3]"}, tensor<5x8xf32> {jax.result_info = "result[4]"}, tensor<5x8xf32> {jax.result_info = "result[5]"}, tensor<5x8xf32> {jax.result_info = "result[6]"}, tensor<5x8xf32> {jax.result_info = "result[7]"}, tensor<5x8xf32> {jax.result_info = "result[8]"}, tensor<5x8xf32> {jax.result_info = "result[9]"}, tensor<5x8xf32> {jax.result_info = "result[10]"}, tensor<5x8xf32> {jax.result_info = "result[11]"}, tensor<5x8xf32> {jax.result_info = "result[12]"}, tensor<5x8xf32> {jax.result_info = "result[13]"}, tensor<5x8xf32> {jax.result_info = "result[14]"}, tensor<5x8xf32> {jax.result_info = "result[15]"}, tensor<5x8xf32> {jax.result_info = "result[16]"}, tensor<5x8xf32> {jax.result_info = "result[17]"}) {
    %cst = stablehlo.constant dense<4.900000e-01> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<5x8xf32>
    %2 = chlo.erf %arg0 : tensor<5x8xf32> -> tensor<5x8xf32>
    %3 = chlo.erfc %arg0 : tensor<5x8xf32> -> tensor<5x8xf32>
    %4 = chlo.lgamma %arg0 : tensor<5x8xf32> -> tensor<5x8xf32>
    %5 = chlo.digamma %arg0 : tensor<5x8xf32> -> tensor<5x8xf32>
    %6 = chlo.bessel_i1e %arg0 : tensor<5x8xf32> -> tensor<5x8xf32>
    %7 = chlo.asinh %arg0 : tensor<5x8xf32> -> tensor<5x8xf32>
    %8 = chlo.atan %arg0 : tensor<5x8xf32> -> tensor<5x8xf32>
    %9 = chlo.square %arg0 : tensor<5x8xf32> -> tensor<5x8xf32>
    %10 = chlo.erf_inv %1 : tensor<5x8xf32> -> tensor<5x8xf32>
    %11 = chlo.asin %1 : tensor<5x8xf32> -> tensor<5x8xf32>
    %12 = chlo.acos %1 : tensor<5x8xf32> -> tensor<5x8xf32>
    %13 = chlo.atanh %1 : tensor<5x8xf32> -> tensor<5x8xf32>
    %14 = stablehlo.tan %1 : tensor<5x8xf32>
    %15 = chlo.sinh %1 : tensor<5x8xf32> -> tensor<5x8xf32>
    %16 = chlo.cosh %1 : tensor<5x8xf32> -> tensor<5x8xf32>
    %17 = stablehlo.abs %arg0 : tensor<5x8xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
    %19 = stablehlo.add %17, %18 : tensor<5x8xf32>
    %20 = chlo.acosh %19 : tensor<5x8xf32> -> tensor<5x8xf32>
    %21 = chlo.next_after %arg0, %1 : tensor<5x8xf32>, tensor<5x8xf32> -> tensor<5x8xf32>
    %22 = stablehlo.abs %arg0 : tensor<5x8xf32>
    %cst_1 = stablehlo.constant dense<1.500000e+00> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
    %24 = stablehlo.add %22, %23 : tensor<5x8xf32>
    %25 = stablehlo.abs %1 : tensor<5x8xf32>
    %cst_2 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5x8xf32>
    %27 = stablehlo.add %25, %26 : tensor<5x8xf32>
    %28 = chlo.zeta %24, %27 : tensor<5x8xf32>, tensor<5x8xf32> -> tensor<5x8xf32>
    return %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %20, %21, %28 : tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>
  }
}
