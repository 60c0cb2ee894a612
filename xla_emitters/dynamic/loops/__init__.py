"""Programs with unknown sizes: fusions of buffer ops become loops, which later become kernels.

    schedule        input and output of a schedule                element_code        one element of an op on buffers
    loop_schedule   one iteration per element                         index_rules         which elements an op that moves them reads
    kernel_code     code inside a loop: accesses, branches, loops     buffer_numbers      sizes and other numbers on the host
    row_..., column_..., stitch_...   schedules of reductions         host_...            schedules and elements only for a CPU

Passes: `disc_lhlo_legalize_to_loop` chooses a schedule, which writes loops for a fusion's results; `disc_input_inline_fusion` replaces
loads of the fusion's other buffers by the code of their elements; the others make the loops kernels (`disc_loop_split` ...).
"""
