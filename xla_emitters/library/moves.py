"""Calls that compute nothing: a note to XLA, whose result is its operand, and a buffer that is allocated."""

from __future__ import annotations

from xla_emitters.library.arguments import Array, LibraryArguments


def pass_through(arguments: LibraryArguments) -> list[Array]:
    """The operands, as they are."""
    return [arguments.xp.array(array, copy=True) for array in arguments.operands]


def allocate(arguments: LibraryArguments) -> list[Array]:
    """Zeros."""
    return [arguments.zeros(i) for i in range(len(arguments.results))]
