"""Shared by the passes: the base class, a greedy pattern driver, folders, canonicalisation, CSE, LICM and DCE; all keep locations.

Also what the IR of a kernel says at any stage, without HLO: its launch, its arguments, the elements it accesses, its in-place updates.
"""
