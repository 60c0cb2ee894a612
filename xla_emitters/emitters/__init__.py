"""From a fusion to a kernel module: the partitioner, the code of elements, the entry function, and one emitter per hero.

`emit.emit_fusion` is the way in.
"""
