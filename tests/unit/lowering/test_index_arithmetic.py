"""Arithmetic built from an expression computes what the expression says, over the whole domain of many small maps."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from unit.lowering.straight_line import run
from xdsl.dialects.builtin import ModuleOp

from xla_emitters.algebra.expression import Expr
from xla_emitters.algebra.interval import Interval, Variable
from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import affine
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.index_arithmetic import expressions_of, is_unsigned, overflowing_part
from xla_emitters.lowering.lower_affine import LowerAffinePass
from xla_emitters.lowering.simplify_affine import SimplifyAffinePass
from xla_emitters.rewrite.kernel_pass import KernelPass

X, Y = Expr.variable(0), Expr.variable(1)
EXPRESSIONS = [
    X,
    X * 4 + Y * 512,
    (X * 4 + Y) // 3,
    (X - Y) // 5,
    (X - Y) % 5,
    (X * 3 - 7) % 4 + (Y + X) // 2,
    (X - 6).ceildiv(4),
    (X + Y).ceildiv(4),
    Expr.maximum(X, Y) * 2,
    Expr.minimum(X - 3, Y),
    (X * Y) % 7 - X * X,
    ((X + Y * 9) // 2) % 3 * 5 + 11,
]
DOMAINS = [((0, 6), (0, 8)), ((-7, 5), (-4, 9))]


def module_of(expressions: list[Expr], bounds: tuple[tuple[int, int], ...]) -> tuple[ModuleOp, IndexingMap]:
    """A function that returns apply_indexing of its arguments."""
    map = IndexingMap(tuple(expressions), tuple(Variable(Interval(*b)) for b in bounds), (), (), ())
    names = ", ".join(f"%x{i}" for i in range(len(bounds)))
    results = ", ".join(["index"] * len(expressions))
    arguments = ", ".join(f"%x{i}: index" for i in range(len(bounds)))
    values = ", ".join(f"%r#{i}" for i in range(len(expressions))) if len(expressions) > 1 else "%r"
    text = f"""
    func.func @f({arguments}) -> ({results}) {{
      %r{f":{len(expressions)}" if len(expressions) > 1 else ""} = xla_gpu.apply_indexing #xla_gpu.indexing_map<"{map}">({names})
      func.return {values} : {results}
    }}"""
    return parse_ir(text), map


def grid(bounds: tuple[tuple[int, int], ...]) -> list[np.ndarray]:
    points = np.array(list(itertools.product(*(range(lower, upper + 1) for lower, upper in bounds))))
    return list(points.T)


@pytest.mark.parametrize("passes", [(SimplifyAffinePass, LowerAffinePass), (LowerAffinePass,)], ids=["both", "one"])
@pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
@pytest.mark.parametrize("bounds", DOMAINS, ids=str)
def test_lowered_value_is_the_map_s(
    expr: Expr, bounds: tuple[tuple[int, int], ...], passes: tuple[type[KernelPass], ...]
) -> None:
    """No map is left, and every point of the domain gets its value; the signed forms of lower-affine alone are right for any sign."""
    module, map = module_of([expr], bounds)
    for step in passes:
        step().apply(make_context(), module)
    module.verify()
    assert not any(op.name == "xla_gpu.apply_indexing" for op in module.walk())
    points = grid(bounds)
    (got,) = run(module, points)
    # Evaluated by Python's own floor division, not by the map.
    wanted = [expr.evaluate([int(x), int(y)]) for x, y in zip(*points, strict=True)]
    np.testing.assert_array_equal(np.broadcast_to(got, points[0].shape), wanted)
    assert [map.evaluate([int(x), int(y)])[0] for x, y in zip(*points, strict=True)] == wanted


def test_a_common_part_is_built_once() -> None:
    module, _ = module_of([(X * 4 + Y) // 8, (X * 4 + Y) % 8], ((0, 6), (0, 8)))
    SimplifyAffinePass().apply(make_context(), module)
    names = [op.name for op in module.walk()]
    assert names.count("arith.muli") == 1
    assert names.count("arith.addi") == 1


def ranges(bounds: tuple[int, int]) -> Callable[[Expr], Interval]:
    return IndexingMap((X,), (Variable(Interval(*bounds)),), (), (), ()).range_of


def test_unsigned_needs_proof() -> None:
    assert is_unsigned(X // 4, ranges((0, 10)))
    assert not is_unsigned(X // 4, ranges((-1, 10)))
    assert not is_unsigned((X - 1) % 4, ranges((0, 10)))
    assert is_unsigned(X - 5, ranges((0, 10)))
    assert not is_unsigned(Expr.maximum(X - 5, X), ranges((0, 10)))
    assert not is_unsigned((X // 4) % 3, ranges((-4, 10)))


def test_what_may_overflow_is_found_where_it_is_divided_or_compared() -> None:
    whole = ranges((0, 2**31 - 1))
    # Low bits of sums are right whatever they wrap at, and an index fits an index.
    for harmless in (X * 3 + 7, X // 4, X % 3 * 5 + (X // 2) * 100, Expr.maximum(X, Expr.constant(3))):
        assert overflowing_part(harmless, whole, 32, unsigned=False) is None
    for dividing in ((X * 2) // 3, (X * 2) % 3 + 1, Expr.minimum(X * 2, Expr.constant(7)), ((X * 2) // 3) // 5):
        assert overflowing_part(dividing, whole, 32, unsigned=False) is X * 2
        assert overflowing_part(dividing, whole, 32, unsigned=True) is None
        assert overflowing_part(dividing, whole, 64, unsigned=False) is None
    assert overflowing_part((X - 1) // 2, whole, 32, unsigned=True) is X - 1
    assert overflowing_part((X + 5) // 3, ranges((0, 2**63 - 1)), 64, unsigned=True) is X + 5


@pytest.mark.parametrize("divisor", [Y, Expr.constant(-3), Expr.constant(0)], ids=str)
def test_divisor_must_be_a_positive_constant(divisor: Expr) -> None:
    module, _ = module_of([X], ((0, 6), (1, 8)))
    (op,) = (op for op in module.walk() if isinstance(op, ApplyIndexingOp))
    dividing = IndexingMap((X // divisor,), op.map.dims, (), (), ())
    op.properties["indexing_map_attr"] = IndexingMapAttr(dividing)
    with pytest.raises(Unsupported, match=r"xla_gpu.apply_indexing divides by '.*', which is not a positive constant"):
        LowerAffinePass().apply(make_context(), module)


def test_affine_expressions() -> None:
    text = """
    func.func @f(%x: index, %y: index) -> index {
      %0 = affine.apply affine_map<(d0)[s0] -> ((d0 * 3 + s0) floordiv 2 + d0 mod 4 - s0 ceildiv 5)> (%x)[%y]
      func.return %0 : index
    }"""
    (op,) = (op for op in parse_ir(text).walk() if isinstance(op, affine.ApplyOp))
    (expr,) = expressions_of(op)
    for x, y in itertools.product(range(-6, 7), repeat=2):
        assert expr.evaluate([x, y]) == (x * 3 + y) // 2 + x % 4 - (-(-y // 5))
