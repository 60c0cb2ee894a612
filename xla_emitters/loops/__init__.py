"""Programs with unknown sizes: fusions of buffer ops become loops, which later become kernels.

    schedule        what a schedule gets, and what it makes           element_code        one element of an op on buffers
    loop_schedule   one iteration per element                         index_rules         which elements an op that moves them reads
    kernel_code     code inside a loop: accesses, branches, loops     buffer_numbers      sizes and other numbers of the host

Passes: `disc_lhlo_legalize_to_loop` picks a schedule, which writes loops for what a fusion returns; `disc_input_inline_fusion` puts the
code of everything else in place of the loads of its buffers.
"""
