"builtin.module"() <{sym_name = "jit_complex"}> ({
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>):
    %0 = "stablehlo.complex"(%arg0, %arg1) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xcomplex<f32>>
    %1 = "stablehlo.real"(%0) : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
    %2 = "stablehlo.imag"(%0) : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
    %3 = "stablehlo.negate"(%2) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %4 = "stablehlo.complex"(%1, %3) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xcomplex<f32>>
    %5 = "stablehlo.multiply"(%0, %4) : (tensor<4x6xcomplex<f32>>, tensor<4x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>>
    %6 = "stablehlo.exponential"(%0) : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>>
    %7 = "stablehlo.add"(%5, %6) : (tensor<4x6xcomplex<f32>>, tensor<4x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>>
    %8 = "stablehlo.real"(%7) : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
    %9 = "stablehlo.imag"(%7) : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
    %10 = "stablehlo.abs"(%0) : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
    "func.return"(%8, %9, %10) : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
