module @jit_double attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5x8xf64>) -> (tensor<5x8xf64> {jax.result_info = "result[0]"}, tensor<5x8xf64> {jax.result_info = "result[1]"}, tensor<5x8xf64> {jax.result_info = "result[2]"}, tensor<5x8xf64> {jax.result_info = "result[3]"}) {
    %cst = stablehlo.constant dense<4.500000e-01> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<5x8xf64>
    %1 = stablehlo.multiply %arg0, %0 : tensor<5x8xf64>
    %2 = chlo.erf_inv %1 : tensor<5x8xf64> -> tensor<5x8xf64>
    %cst_0 = stablehlo.constant dense<3.000000e+00> : tensor<f64>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<5x8xf64>
    %4 = stablehlo.add %arg0, %3 : tensor<5x8xf64>
    %5 = chlo.lgamma %4 : tensor<5x8xf64> -> tensor<5x8xf64>
    %6 = stablehlo.add %2, %5 : tensor<5x8xf64>
    %7 = chlo.erfc %arg0 : tensor<5x8xf64> -> tensor<5x8xf64>
    %cst_1 = stablehlo.constant dense<5.000000e+00> : tensor<f64>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<5x8xf64>
    %9 = stablehlo.multiply %arg0, %8 : tensor<5x8xf64>
    %10 = chlo.bessel_i1e %9 : tensor<5x8xf64> -> tensor<5x8xf64>
    %11 = chlo.digamma %arg0 : tensor<5x8xf64> -> tensor<5x8xf64>
    return %6, %7, %10, %11 : tensor<5x8xf64>, tensor<5x8xf64>, tensor<5x8xf64>, tensor<5x8xf64>
  }
}
