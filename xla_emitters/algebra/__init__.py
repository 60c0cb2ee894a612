"""One integer algebra: index expressions, indexing maps, sizes, and what is known about them. Plain values that know no IR and no arrays.

    m = IndexingMap.parse("(d0, d1) -> (d1, d0 floordiv 4), domain: d0 in [0, 19], d1 in [0, 39]")
    m.evaluate([8, 5])   ->   (5, 2)

    b, s = Size.symbol("b"), Size.symbol("s")
    Facts.of_symbols(("b", "s"), 1, "jax.export").simplify((b * s + s) // s)   ->   b + 1

Maps and sizes have the same expressions. Those of maps stay as written until a map is simplified, because their text is XLA's; a size is an
expression whose operators keep a normal form. What holds of the variables of a map are intervals and constraints, of symbols facts.
Names are imported from their modules, so that a command loads only what it needs.
    interval     closed intervals, variables                     residue     remainders
    expression   hash-consed expressions, as written             size        polynomials over symbols in normal form
    simplify     rewriting that knows ranges                     facts       equalities and limits, each with its source
    map          compose, simplify, remove variables             knowledge   what follows from them: bounds, residues, simpler forms
    map_text     parser and printer of maps                      size_text   parser and printer of sizes, jax.export's notation
    shape_maps   maps of shapes: linearize, reshape, bitcast     guards      conditions that a run checks
    inverse      the inverse of a map                            solve       from shapes of arguments to symbols
                                                                 axes        which axes have the same size
"""
