// jax.nn.softmax of f32[512,2048] as JAX lowers it to StableHLO.
module @softmax {
  func.func public @main(%x: tensor<512x2048xf32>) -> tensor<512x2048xf32> {
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
        : (tensor<512x2048xf32>, tensor<f32>) -> tensor<512xf32>
    %maxes = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<512xf32>) -> tensor<512x2048xf32>
    %shifted = stablehlo.subtract %x, %maxes : tensor<512x2048xf32>
    %exp = stablehlo.exponential %shifted : tensor<512x2048xf32>
    %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<512x2048xf32>, tensor<f32>) -> tensor<512xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<512xf32>) -> tensor<512x2048xf32>
    %result = stablehlo.divide %exp, %sums : tensor<512x2048xf32>
    return %result : tensor<512x2048xf32>
  }
}
