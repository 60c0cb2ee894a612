"""The sizes of a program: every dimension of every value as a `Size` of `algebra` over the program's symbols, before it runs.

sizes = sizes_of(module)                      of a module of the `hlo` dialect
sizes.of(value)         ->  (b, s, 32)        None for a size that depends on data
sizes.numbers(value)    ->  (b, s*4)          the elements of a small integer array, if they follow from sizes
sizes.same(x, y)        ->  True              x and y have the same shape
sizes.guards.check(arguments)                 {"b": 2, "s": 16}, or a DataError, before anything is computed
print(sizes.report())                         symbols, their sources, the guards

walked_array   arrays during the walk                       numbers     integer arithmetic on sizes: the shape operands
sizing         shape rules over the sizes of a program      size_walk   walks a module from its entry: calls, loops, branches
program        sizes, guards, names and report; a program at fixed sizes
"""

from xla_emitters.dynamic.sizes.program import ArgumentFacts, ProgramGuards, SizeNames, Sizes, sizes_of, specialize

__all__ = ["ArgumentFacts", "ProgramGuards", "SizeNames", "Sizes", "sizes_of", "specialize"]
