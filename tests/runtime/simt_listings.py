"""The seed's complete GELU listings, for any shape and launch.

    listing("scf", (2, 8, 64), threads=8)        the module's text at that stage

Elided parts of the seed ("more arithmetic operations") are filled in from the neighbouring listings; the launch is in the
entry's attributes. Each thread takes 4 elements in a row: 4 * threads divides the last dimension.
"""

from __future__ import annotations

STAGES = ("xla_gpu", "inlined", "scf", "flat", "vectorized", "unrolled", "pointers", "llvm")

BODY = """
  {r}0 = arith.mulf {x}, {x} : bf16
  {r}1 = arith.mulf {r}0, {x} : bf16
  {r}2 = arith.mulf {r}1, %cst_2 : bf16
  {r}3 = arith.addf {x}, {r}2 : bf16
  {r}4 = arith.mulf {r}3, %cst_1 : bf16
  {r}5 = math.tanh {r}4 : bf16
  {r}6 = arith.addf {r}5, %cst_0 : bf16
  {r}7 = arith.mulf {r}6, %cst : bf16
  {r}8 = arith.mulf {x}, {r}7 : bf16
"""

CONSTANTS = """
  %cst = arith.constant 5.000000e-01 : bf16
  %cst_0 = arith.constant 1.000000e+00 : bf16
  %cst_1 = arith.constant 7.968750e-01 : bf16
  %cst_2 = arith.constant 4.467770e-02 : bf16
"""


def listing(stage: str, shape: tuple[int, int, int], threads: int) -> str:
    """The module's text at `stage`."""
    planes, rows, columns = shape
    width = 4 * threads
    assert columns % width == 0
    per_row = columns // width
    blocks = planes * rows * per_row
    elements = planes * rows * columns
    nd, flat = f"tensor<{planes}x{rows}x{columns}xbf16>", f"tensor<{elements}xbf16>"
    domain = f"domain: th_x in [0, {threads - 1}], bl_x in [0, {blocks - 1}], vector_index in [0, 3]"
    plane = f"bl_x floordiv {rows * per_row}"
    row = f"(bl_x floordiv {per_row}) mod {rows}"
    column = f"(bl_x mod {per_row}) * {width} + th_x * 4 + vector_index"
    loop_map = f'#xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> ({plane}, {row}, {column})," "{domain}">'
    maps = [
        f'#xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> ({result}), {domain}">'
        for result in (plane, row, column)
    ]
    line = f"th_x * 4 + bl_x * {width} + vector_index"
    line_map = f'#xla_gpu.indexing_map<"(th_x, bl_x, vector_index) -> ({line}), {domain}">'
    launch = f"gpu.known_block_size = array<i32: {threads}, 1, 1>, gpu.known_grid_size = array<i32: {blocks}, 1, 1>"
    ids = f"""
  %thread_id_x = gpu.thread_id x {{xla.range = [0 : index, {threads - 1} : index]}}
  %block_id_x = gpu.block_id x {{xla.range = [0 : index, {blocks - 1} : index]}}
"""
    indices = "".join(f"  %c{n} = arith.constant {n} : index\n" for n in range(5))

    def entry(tensor: str, body: str, returned: str) -> str:
        return f"""
func.func @main(%input: {tensor} {{xla.invariant, xla.slice_index = 0 : index}}, %output: {tensor} {{xla.slice_index = 1 : index}})
    -> {tensor} attributes {{xla.entry, {launch}}} {{{ids}{body}
  return {returned} : {tensor}
}}"""

    if stage in ("xla_gpu", "inlined"):
        called = BODY.format(x="%extracted", r="%r")
        if stage == "xla_gpu":
            compute = (
                f"%r8 = xla_gpu.pure_call @gelu(%input, %dim0, %dim1, %dim2) : ({nd}, index, index, index) -> bf16"
            )
            callee = f"""
func.func private @gelu(%arg0: {nd}, %i: index, %j: index, %k: index) -> bf16 {{{CONSTANTS}
  %extracted = tensor.extract %arg0[%i, %j, %k] : {nd}{called}
  return %r8 : bf16
}}"""
        else:
            compute, callee = f"%extracted = tensor.extract %input[%dim0, %dim1, %dim2] : {nd}{called}", ""
        body = f"""{CONSTANTS}
  %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2)
      in {loop_map} iter_args(%iter = %output) -> ({nd}) {{
    {compute}
    %inserted = tensor.insert %r8 into %iter[%dim0, %dim1, %dim2] : {nd}
    xla_gpu.yield %inserted : {nd}
  }}"""
        return entry(nd, body, "%xla_loop") + callee
    if stage == "scf":
        body = f"""{CONSTANTS}{indices}
  %last_thread = arith.constant {threads - 1} : index
  %last_block = arith.constant {blocks - 1} : index
  %xla_loop = scf.for %vector_index = %c0 to %c4 step %c1 iter_args(%iter = %output) -> ({nd}) {{
    %2 = arith.cmpi sge, %thread_id_x, %c0 : index
    %3 = arith.cmpi sle, %thread_id_x, %last_thread : index
    %4 = arith.andi %2, %3 : i1
    %5 = arith.cmpi sge, %block_id_x, %c0 : index
    %6 = arith.cmpi sle, %block_id_x, %last_block : index
    %7 = arith.andi %5, %6 : i1
    %inbounds = arith.andi %4, %7 : i1
    %9 = scf.if %inbounds -> ({nd}) {{
      %dim0 = xla_gpu.apply_indexing {maps[0]}(%thread_id_x, %block_id_x)[%vector_index]
      %dim1 = xla_gpu.apply_indexing {maps[1]}(%thread_id_x, %block_id_x)[%vector_index]
      %dim2 = xla_gpu.apply_indexing {maps[2]}(%thread_id_x, %block_id_x)[%vector_index]
      %extracted = tensor.extract %input[%dim0, %dim1, %dim2] : {nd}{BODY.format(x="%extracted", r="%r")}
      %inserted = tensor.insert %r8 into %iter[%dim0, %dim1, %dim2] : {nd}
      scf.yield %inserted : {nd}
    }} else {{
      scf.yield %iter : {nd}
    }}
    scf.yield %9 : {nd}
  }}"""
        return entry(nd, body, "%xla_loop")
    if stage == "flat":
        body = f"""{CONSTANTS}{indices}
  %xla_loop = scf.for %vector_index = %c0 to %c4 step %c1 iter_args(%iter = %output) -> ({flat}) {{
    %dim = xla_gpu.apply_indexing {line_map}(%thread_id_x, %block_id_x, %vector_index)
    %extracted = tensor.extract %input[%dim] : {flat}{BODY.format(x="%extracted", r="%r")}
    %inserted = tensor.insert %r8 into %iter[%dim] : {flat}
    scf.yield %inserted : {flat}
  }}"""
        return entry(flat, body, "%xla_loop")
    read = f"""
  %pad = arith.constant 0.000000e+00 : bf16
  %vector_0 = arith.constant dense<0.000000e+00> : vector<4xbf16>
  %0 = xla_gpu.apply_indexing {line_map}(%thread_id_x, %block_id_x, %c0)
  %2 = vector.transfer_read %input[%0], %pad {{in_bounds = [true]}} : {flat}, vector<4xbf16>"""
    if stage == "vectorized":
        body = f"""{CONSTANTS}{indices}{read}
  %xla_loop:2 = scf.for %vector_index = %c0 to %c4 step %c1
      iter_args(%iter = %output, %iter_vector = %vector_0) -> ({flat}, vector<4xbf16>) {{
    %5 = vector.extract %2[%vector_index] : bf16 from vector<4xbf16>{BODY.format(x="%5", r="%r")}
    %15 = vector.insert %r8, %iter_vector [%vector_index] : bf16 into vector<4xbf16>
    scf.yield %iter, %15 : {flat}, vector<4xbf16>
  }}
  %4 = vector.transfer_write %xla_loop#1, %output[%0] {{in_bounds = [true]}} : vector<4xbf16>, {flat}"""
        return entry(flat, body, "%4")
    if stage == "unrolled":
        steps, vector = "", "%vector_0"
        for lane in range(4):
            steps += f"""
  %x{lane} = vector.extract %2[{lane}] : bf16 from vector<4xbf16>{BODY.format(x=f"%x{lane}", r=f"%r{lane}_")}
  %v{lane} = vector.insert %r{lane}_8, {vector} [{lane}] : bf16 into vector<4xbf16>"""
            vector = f"%v{lane}"
        write = f"\n  %4 = vector.transfer_write {vector}, %output[%0] {{in_bounds = [true]}} : vector<4xbf16>, {flat}"
        return entry(flat, CONSTANTS + indices + read + steps + write, "%4")
    arguments = """(%arg0: !llvm.ptr {llvm.align = 16 : index, llvm.noalias, xla.invariant},
     %arg1: !llvm.ptr {llvm.align = 256 : index, llvm.noalias})"""
    if stage == "pointers":
        steps = ""
        for lane in range(4):
            steps += f"\n  %x{lane} = vector.extract %17[{lane}] : bf16 from vector<4xbf16>"
            steps += BODY.format(x=f"%x{lane}", r=f"%r{lane}_")
        return f"""
func.func @main{arguments} attributes {{xla.entry, {launch}}} {{{CONSTANTS}{ids}
  %c4_i32 = arith.constant 4 : i32
  %width = arith.constant {width} : i32
  %10 = arith.index_cast %thread_id_x : index to i32
  %11 = arith.muli %10, %c4_i32 : i32
  %12 = arith.index_cast %block_id_x : index to i32
  %13 = arith.muli %12, %width : i32
  %14 = arith.addi %11, %13 : i32
  %15 = arith.index_cast %14 : i32 to index
  %16 = arith.index_castui %15 : index to i32
  %ptr = llvm.getelementptr inbounds %arg0[0, %16] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<{elements} x bf16>
  %17 = llvm.load %ptr invariant {{alignment = 2 : i64}} : !llvm.ptr -> vector<4xbf16>{steps}
  %49 = vector.from_elements %r0_8, %r1_8, %r2_8, %r3_8 : vector<4xbf16>
  %50 = llvm.getelementptr inbounds %arg1[0, %16] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.array<{elements} x bf16>
  llvm.store %49, %50 {{alignment = 2 : i64}} : vector<4xbf16>, !llvm.ptr
  return
}}"""
    assert stage == "llvm"
    steps, vector = "", "%8"
    for lane in range(4):
        steps += f"""
  %i{lane} = llvm.mlir.constant({lane} : i32) : i32
  %x{lane} = llvm.extractelement %17[%i{lane} : i32] : vector<4xbf16>
  %a{lane} = llvm.fmul %x{lane}, %x{lane} : bf16
  %b{lane} = llvm.fmul %a{lane}, %x{lane} : bf16
  %c{lane} = llvm.fmul %b{lane}, %4 : bf16
  %d{lane} = llvm.fadd %x{lane}, %c{lane} : bf16
  %e{lane} = llvm.fmul %d{lane}, %5 : bf16
  %f{lane} = llvm.fpext %e{lane} : bf16 to f32
  %g{lane} = llvm.call @__nv_tanhf(%f{lane}) : (f32) -> f32
  %h{lane} = llvm.fptrunc %g{lane} : f32 to bf16
  %j{lane} = llvm.fadd %h{lane}, %6 : bf16
  %k{lane} = llvm.fmul %j{lane}, %7 : bf16
  %l{lane} = llvm.fmul %x{lane}, %k{lane} : bf16
  %v{lane} = llvm.insertelement %l{lane}, {vector}[%i{lane} : i32] : vector<4xbf16>"""
        vector = f"%v{lane}"
    return f"""
llvm.func @__nv_tanhf(f32) -> f32
llvm.func @main{arguments} attributes {{nvvm.kernel, nvvm.reqntid = array<i32: {threads}, 1, 1>, {launch}}} {{
  %0 = llvm.mlir.constant({width} : i32) : i32
  %1 = llvm.mlir.constant(4 : i32) : i32
  %4 = llvm.mlir.constant(4.467770e-02 : bf16) : bf16
  %5 = llvm.mlir.constant(7.968750e-01 : bf16) : bf16
  %6 = llvm.mlir.constant(1.000000e+00 : bf16) : bf16
  %7 = llvm.mlir.constant(5.000000e-01 : bf16) : bf16
  %8 = llvm.mlir.poison : vector<4xbf16>
  %11 = nvvm.read.ptx.sreg.tid.x range <i32, 0, {threads}> : i32
  %12 = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, {blocks}> : i32
  %13 = llvm.mul %11, %1 : i32
  %14 = llvm.mul %12, %0 : i32
  %15 = llvm.add %13, %14 : i32
  %16 = llvm.getelementptr inbounds %arg0[%15] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
  %17 = llvm.load %16 invariant : !llvm.ptr -> vector<4xbf16>{steps}
  %18 = llvm.getelementptr inbounds %arg1[%15] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
  llvm.store {vector}, %18 : vector<4xbf16>, !llvm.ptr
  llvm.return
}}"""
