"""Programs on buffers: `hlo` on tensors becomes `lmhlo` on memrefs; then buffers are removed, and their lifetimes shortened.

disc_legalize_to_lhlo         values become buffers, each allocated with the sizes that its op's rule computes
disc_placement_fixer          ops added after the placer get a device
disc_lower_to_buffer_alias    a copy or a reshape becomes a second name of a buffer
disc_localize_small_cpu_buffer  lists of sizes are moved to the stack
disc_buffer_optimization      buffers are allocated as late, and freed as early, as possible
disc_remove_dead_buffer       buffers without uses
disc_dead_temp_buffer_removal buffers that are never read

index_code, result_sizes      sizes as code: the size of a result along each dimension
"""
