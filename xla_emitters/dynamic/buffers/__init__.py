"""Programs on buffers: `hlo` on tensors becomes `lmhlo` on memrefs, buffers get short lives, and ops become fusions.

disc_legalize_to_lhlo       values become buffers, each allocated with the sizes that its op's rule computes
disc_..._buffer..., ...     buffers that are not needed are removed, the others allocated late and freed early
disc_fuse_on_buffer         chooses the ops of each kernel; disc_specialize_... adds variants of a fusion for some sizes

index_code, result_sizes    sizes as code: the size of a result along each dimension
buffer_sizes, buffer_uses   which buffers have one shape; which op reads or writes one
fusion_rules  which ops can be one kernel; fusion_graph: without making a cycle
fusion_alone, fusion_as_hlo a fusion as a program of its own, to compile it for fixed sizes
"""
