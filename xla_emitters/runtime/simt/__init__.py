"""The CPU executor: kernel modules at any stage, run with NumPy over all threads at once.

    execute.py          finds the entry, binds arrays, runs blocks in chunks
    code.py             IR to closures; the rules tables; branches
    machine.py          values, masks, tensors that are updated in place
    memory.py           buffers, addresses, checked access
    scalars.py          integers that wrap, floats that round: exact arithmetic on arrays
    arith_rules.py ...  the ops of each dialect, one file each

It is the project's yardstick: two consecutive stages of a compilation must give the same bits here; else the pass between them is wrong.
"""

from xla_emitters.runtime.simt.execute import execute, written_elements

__all__ = ["execute", "written_elements"]
