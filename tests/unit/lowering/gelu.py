"""The seed's GELU as it reaches the lowerings to LLVM: pointers, one apply_indexing, four unrolled elements."""

LANE = """
      %x{n} = vector.extract %in[{n}] : bf16 from vector<4xbf16>
      %a{n} = arith.mulf %x{n}, %x{n} : bf16
      %b{n} = arith.mulf %a{n}, %x{n} : bf16
      %c{n} = arith.mulf %b{n}, %cst_2 : bf16
      %d{n} = arith.addf %x{n}, %c{n} : bf16
      %e{n} = arith.mulf %d{n}, %cst_1 : bf16
      %f{n} = math.tanh %e{n} : bf16
      %g{n} = arith.addf %f{n}, %cst_0 : bf16
      %h{n} = arith.mulf %g{n}, %cst : bf16
      %i{n} = arith.mulf %x{n}, %h{n} : bf16
      %out{n} = vector.insert %i{n}, %{before} [{n}] : bf16 into vector<4xbf16>"""

GELU = (
    """
#map = #xla_gpu.indexing_map<"(th_x, bl_x) -> (th_x * 4 + bl_x * 512), domain: th_x in [0, 127], bl_x in [0, 24575]">
module attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} {
  func.func @fusion(%arg0: !llvm.ptr {llvm.align = 16 : index, llvm.dereferenceable = 25165824 : index, llvm.noalias,
                                      xla.invariant, xla.slice_index = 0 : index},
                    %arg1: !llvm.ptr {llvm.align = 256 : index, llvm.dereferenceable = 25165824 : index, llvm.noalias,
                                      xla.slice_index = 1 : index})
      attributes {xla.entry, gpu.known_block_size = array<i32: 128, 1, 1>, gpu.known_grid_size = array<i32: 24576, 1, 1>} {
      %cst = arith.constant 5.000000e-01 : bf16
      %cst_0 = arith.constant 1.000000e+00 : bf16
      %cst_1 = arith.constant 7.968750e-01 : bf16
      %cst_2 = arith.constant 4.467770e-02 : bf16
      %zero = arith.constant dense<0.000000e+00> : vector<4xbf16>
      %block_id_x = gpu.block_id x {xla.range = [0 : index, 24575 : index]}
      %thread_id_x = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
      %0 = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x)
      %1 = arith.index_castui %0 : index to i32
      %2 = llvm.getelementptr inbounds %arg0[%1] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
      %in = llvm.load %2 invariant : !llvm.ptr -> vector<4xbf16>"""
    + "".join(LANE.format(n=n, before=f"out{n - 1}" if n else "zero") for n in range(4))
    + """
      %3 = llvm.getelementptr inbounds %arg1[%1] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
      llvm.store %out3, %3 : vector<4xbf16>, !llvm.ptr
      func.return
  }
}
"""
)
