"""From a fusion to a kernel module: the partitioner, the code of elements, the entry function, and one emitter per hero.

The entry point is `emit.emit_fusion`.
"""
