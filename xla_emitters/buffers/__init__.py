"""Programs on buffers: `hlo` on tensors becomes `lmhlo` on memrefs, and buffers become fewer and live shorter.

disc_legalize_to_lhlo         values become buffers, each allocated at the sizes that its op's rule gives
disc_placement_fixer          ops that were added since the placer ran get a device
disc_lower_to_buffer_alias    a copy or a reshape becomes a second name of a buffer
disc_localize_small_cpu_buffer  lists of sizes go onto the stack
disc_buffer_optimization      buffers are allocated as late, and freed as early, as can be
disc_remove_dead_buffer       buffers without uses
disc_dead_temp_buffer_removal buffers that nobody reads

index_code, result_sizes      sizes as code: how many elements a result has along each dimension
"""
