// tanh(x @ w + bias) for any number of rows.
module @dense {
  func.func public @main(%x: tensor<?x4xf32>, %w: tensor<4x8xf32>, %bias: tensor<8xf32>) -> tensor<?x8xf32> {
    %product = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x4xf32>, tensor<4x8xf32>) -> tensor<?x8xf32>
    %rows = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %columns = stablehlo.constant dense<8> : tensor<1xi32>
    %row_list = stablehlo.reshape %rows : (tensor<i32>) -> tensor<1xi32>
    %shape = stablehlo.concatenate %row_list, %columns, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %biases = stablehlo.dynamic_broadcast_in_dim %bias, %shape, dims = [1] : (tensor<8xf32>, tensor<2xi32>) -> tensor<?x8xf32>
    %sum = stablehlo.add %product, %biases : tensor<?x8xf32>
    %result = stablehlo.tanh %sum : tensor<?x8xf32>
    return %result : tensor<?x8xf32>
  }
}
