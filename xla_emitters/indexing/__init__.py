"""Indexing maps: immutable expressions, intervals, maps with domains, their simplification and their text.

    m = IndexingMap.parse("(d0, d1) -> (d1, d0 floordiv 4), domain: d0 in [0, 19], d1 in [0, 39]")
    m.evaluate([8, 5])   ->   (5, 2)

Plain values: nothing here imports the compiler's IR; there an attribute wraps them (dialects/xla_gpu/indexing_map.py).
    interval     closed intervals, variables      map      IndexingMap: compose, simplify, remove variables
    expression   hash-consed expressions          text     parser and printer
    simplify     rewriting that knows ranges      shapes   the maps of shapes: linearize, reshape, transpose, bitcast
    inverse      the inverse of a map
"""

from xla_emitters.indexing.expression import Expr, ExprKind
from xla_emitters.indexing.interval import Interval, Variable
from xla_emitters.indexing.map import IndexingMap

__all__ = ["Expr", "ExprKind", "IndexingMap", "Interval", "Variable"]
