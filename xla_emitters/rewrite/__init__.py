"""Shared by the passes: the base class, a greedy pattern driver, folders, canonicalisation, CSE, LICM and DCE; all keep locations."""
