"""Which block of a cluster an address in shared memory means.

Source: PTX ISA 8.8, 9.7.9.22 "mapa"; where the rank is, is not part of it.
"""

RANK_SHIFT, RANK_MASK = 18, 31
"""Bits 18 to 22 of the address are 0 for the thread's own block, else one more than the rank of the block in its cluster."""
MOST_BLOCKS = 16
"""Largest size of a cluster."""
