module {
func @f(%6: index, %c1: index, %c256: index, %2: index, %arg3: memref<f32>, %arg2: memref<2xi32>, %arg1: memref<?xf32>, %1: index, %arg4: memref<?xf32>) {
  "gpu.launch_func"(%6, %c1, %c1, %c256, %c1, %c1, %2, %arg3, %arg2, %arg1, %1, %arg4) {kernel = "dhlo_fusion_xla_lhlo_reduce_2_0_kernel", kernel_module = @dhlo_fusion_xla_lhlo_reduce_2_0_kernel} : (index, index, index, index, index, index, index, memref<f32>, memref<2xi32>, memref<?xf32>, index, memref<?xf32>) -> ()
  %c0_0 = constant 0 : index
  %8 = load %arg2[%c0_0] : memref<2xi32>
  return
}
  gpu.module @dhlo_fusion_xla_lhlo_reduce_2_0_kernel {
    gpu.func @dhlo_fusion_xla_lhlo_reduce_2_0_kernel(%arg0: index, %arg1: memref<f32>, %arg2: memref<2xi32>, %arg3: memref<?xf32>, %arg4: index, %arg5: memref<?xf32>) workgroup(%arg7 : memref<32xf32, 3>) kernel {
      gpu.return
    }
  }
}
