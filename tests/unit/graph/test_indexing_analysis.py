"""The maps of a fusion say exactly which elements depend on which: checked by changing one element after another."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.errors import UsageError
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.indexing_analysis import (
    Indexings,
    indexing_of_operands,
    indexing_of_results,
    indexing_rows,
    print_rows,
    rows_as_json,
)
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo import parse_hlo

ADD = "add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }\n"

# By name: instructions after `p = s32[...] parameter(0)` and the like; sums only, so that every element that is needed is seen.
FUSIONS = {
    "transpose": "p = s32[2,4] parameter(0) ROOT r = s32[4,2] transpose(p), dimensions={1,0}",
    "broadcast": "p = s32[3] parameter(0) ROOT r = s32[2,3,4] broadcast(p), dimensions={1}",
    "reverse and slice": """p = s32[7] parameter(0) t = s32[7] reverse(p), dimensions={0}
        ROOT r = s32[3] slice(t), slice={[1:6:2]}""",
    "reshape": "p = s32[2,6] parameter(0) ROOT r = s32[4,3] reshape(p)",
    "bitcast": "p = s32[2,6]{0,1} parameter(0) ROOT r = s32[4,3] bitcast(p)",
    "pad": "p = s32[3,4] parameter(0) z = s32[] parameter(1) ROOT r = s32[4,6] pad(p, z), padding=2_-1_0x0_-1_1",
    "concatenate": """p = s32[2,2] parameter(0) q = s32[2,3] parameter(1) c = s32[2,7] concatenate(p, q, p), dimensions={1}
        ROOT r = s32[2,4] slice(c), slice={[0:2], [1:5]}""",
    "reduce": "p = s32[3,4,2] parameter(0) z = s32[] parameter(1) ROOT r = s32[4] reduce(p, z), dimensions={2,0}, to_apply=add",
    "reduce-window": """p = s32[6] parameter(0) z = s32[] parameter(1)
        ROOT r = s32[4] reduce-window(p, z), window={size=3 stride=2 pad=1_2}, to_apply=add""",
    "dilated window": """p = s32[4] parameter(0) z = s32[] parameter(1)
        ROOT r = s32[5] reduce-window(p, z), window={size=3 stride=2 pad=1_1 lhs_dilate=3 rhs_dilate=1}, to_apply=add""",
    "dot": """p = s32[2,3] parameter(0) one = s32[] constant(1) q = s32[3,2] broadcast(one), dimensions={}
        ROOT r = s32[2,2] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "convolution": """p = s32[1,5,2] parameter(0) one = s32[] constant(1) q = s32[3,2,2] broadcast(one), dimensions={}
        ROOT r = s32[1,3,2] convolution(p, q), window={size=3 stride=2 pad=1_1}, dim_labels=b0f_0io->b0f""",
    "a diamond with two ways": """p = s32[3,3] parameter(0) t = s32[3,3] transpose(p), dimensions={1,0}
        ROOT r = s32[3,3] add(p, t)""",
    "a diamond with one way": """p = s32[3,3] parameter(0) t = s32[3,3] transpose(p), dimensions={1,0}
        u = s32[3,3] transpose(p), dimensions={1,0} ROOT r = s32[3,3] add(t, u)""",
    "a row sum of a transpose": """p = s32[3,4] parameter(0) z = s32[] parameter(1) t = s32[4,3] transpose(p), dimensions={1,0}
        s = s32[3] reduce(t, z), dimensions={0}, to_apply=add ROOT r = s32[3,2] broadcast(s), dimensions={0}""",
    "dynamic-slice": """p = s32[6,3] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2)
        ROOT r = s32[2,3] dynamic-slice(p, i, j), dynamic_slice_sizes={2,3}""",
    "dynamic-slice from a constant": """p = s32[6] parameter(0) i = s32[] constant(40)
        ROOT r = s32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}""",
    "dynamic-slice twice": """p = s32[8] parameter(0) i = s32[] parameter(1) j = s32[] parameter(2)
        s = s32[5] dynamic-slice(p, i), dynamic_slice_sizes={5} ROOT r = s32[2] dynamic-slice(s, j), dynamic_slice_sizes={2}""",
    "a slice that goes into an update": """p = s32[8] parameter(0) q = s32[9] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
        s = s32[3] dynamic-slice(p, i), dynamic_slice_sizes={3} u = s32[9] dynamic-update-slice(q, s, j)
        ROOT r = s32[9] reverse(u), dimensions={0}""",
    "gather": """p = s32[5,3] parameter(0) rows = s32[4,2] parameter(1)
        ROOT r = s32[4,1,2] gather(p, rows), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1}, index_vector_dim=1,
            slice_sizes={1,2}""",
    "gather after a transpose": """p = s32[5,3] parameter(0) rows = s32[4,1] parameter(1)
        g = s32[4,1,3] gather(p, rows), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1,
            slice_sizes={1,3}
        h = s32[4,3] reshape(g) ROOT r = s32[3,4] transpose(h), dimensions={1,0}""",
    "gather at an iota": """p = s32[5,3] parameter(0) rows = s32[5,1] iota(), iota_dimension=0
        ROOT r = s32[5,1,3] gather(p, rows), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1,
            slice_sizes={1,3}""",
    "two roots": """p = s32[2,3] parameter(0) t = s32[3,2] transpose(p), dimensions={1,0} n = s32[2,3] negate(p)
        ROOT r = (s32[3,2], s32[2,3]) tuple(t, n)""",
}


def view(name: str) -> FusionView:
    return view_of_entry(f"{ADD}ENTRY e {{ {FUSIONS[name]} }}")


def view_of_entry(text: str) -> FusionView:
    return view_of(entry_of(parse_hlo(text)))


def inputs(of: FusionView) -> list[np.ndarray]:
    """Starts are small, some below 0 and some too large; all else is random."""
    rng = np.random.default_rng(11)
    starts = {"i": 2, "j": 9, "rows": rng.integers(-2, 8, (4, 2))}
    found = list[np.ndarray]()
    for parameter in of.parameters:
        dims, name = dims_of(parameter.result), parameter.instruction_name.data
        given = np.asarray(starts[name]) if name in starts else rng.integers(-(10**6), 10**6, dims)
        found.append(np.resize(given, dims).astype(np.int32))
    return found


def value_of(of: FusionView, op: HloOp, arrays: list[np.ndarray]) -> np.ndarray:
    """The value of an instruction: a parameter, or an iota."""
    parameters = [parameter.result for parameter in of.parameters]
    if op.result in parameters:
        return arrays[parameters.index(op.result)]
    return op.evaluate([], no_computation)


def no_computation(name: str, arguments: Sequence[Any]) -> Any:
    raise AssertionError(f"{name} is called with {arguments}")


def related(of: FusionView, indexings: Indexings, arrays: list[np.ndarray]) -> set[tuple[Any, Any]]:
    """The pairs (from, to) that the maps give, with the runtime variables that their origins hold."""
    pairs = set[tuple[Any, Any]]()
    for indexing in indexings:
        m = indexing.map
        first = m.num_dims + len(m.range_vars)
        for point in product(*(range(v.bounds.lower, v.bounds.upper + 1) for v in m.variables[:first])):
            runtime = [0] * len(m.runtime_vars)
            for number, origin in enumerate(indexing.origins):
                assert isinstance(origin.value.owner, HloOp)
                held = value_of(of, origin.value.owner, arrays)
                at = origin.map.evaluate(point[: m.num_dims], [*point[m.num_dims :], *runtime])
                bounds = m.runtime_vars[number].bounds
                runtime[number] = min(max(int(held[at]), bounds.lower), bounds.upper)
            symbols = [*point[m.num_dims :], *runtime]
            if m.constraints_satisfied(point[: m.num_dims], symbols):
                pairs.add((point[: m.num_dims], m.evaluate(point[: m.num_dims], symbols)))
    return pairs


def found_by_changing(of: FusionView, number: int, arrays: list[np.ndarray]) -> list[set[tuple[Any, Any]]]:
    """For each result: (its index, the parameter's index) wherever a change of the one changes the other."""
    before = evaluate(of.computation, arrays)
    found = [set[tuple[Any, Any]]() for _ in before]
    for at in np.ndindex(*arrays[number].shape):
        changed = [array.copy() for array in arrays]
        changed[number][at] += 1 << 22
        for pairs, old, new in zip(found, before, evaluate(of.computation, changed), strict=True):
            pairs |= {(index, at) for index in np.ndindex(*old.shape) if old[index] != new[index]}
    return found


NUMBERS = {"i", "j", "rows"}
"""Parameters that say where: a change of theirs moves everything, which is not what maps are about."""

COVERED = {("pad", "z"), ("a slice that goes into an update", "q")}
"""Where another operand covers some of this one, its map still says all, as XLA's does: what is left out is not one map."""


@pytest.mark.parametrize("name", FUSIONS)
def test_the_maps_say_what_matters(name: str) -> None:
    of = view(name)
    arrays = inputs(of)
    for number, parameter in enumerate(of.parameters):
        if parameter.instruction_name.data in NUMBERS:
            continue
        wanted = found_by_changing(of, number, arrays)
        for root, pairs in zip(of.roots, wanted, strict=True):
            needed = indexing_of_operands(of, root)[parameter.result]
            given = indexing_of_results(of, parameter.result)[root.result]
            assert needed is not None
            assert given is not None
            seen = related(of, needed, arrays)
            assert seen >= pairs
            assert seen == pairs or (name, parameter.instruction_name.data) in COVERED
            assert {(there, here) for here, there in related(of, given, arrays)} == seen


def test_ways_that_lead_to_the_same_elements_are_one() -> None:
    for name, ways in (("a diamond with two ways", 2), ("a diamond with one way", 1)):
        of = view(name)
        (root,) = of.roots
        needed = indexing_of_operands(of, root)[of.parameters[0].result]
        assert needed is not None
        assert len(needed) == ways


def test_a_deep_diamond_is_not_walked_way_by_way() -> None:
    steps = "".join(
        f"t{i + 1} = s32[3,3] transpose(x{i}), dimensions={{1,0}} x{i + 1} = s32[3,3] add(x{i}, t{i + 1})\n"
        for i in range(60)
    )
    text = f"ENTRY e {{ x0 = s32[3,3] parameter(0)\n{steps} ROOT r = s32[3,3] negate(x60) }}"
    of = view_of_entry(text)
    needed = indexing_of_operands(of, of.roots[0])[of.parameters[0].result]
    assert needed is not None
    assert {str(indexing.map).partition(", domain")[0] for indexing in needed} == {
        "(d0, d1) -> (d0, d1)",
        "(d0, d1) -> (d1, d0)",
    }


def test_constants_and_iotas_are_looked_through() -> None:
    for name, wanted in (
        ("dynamic-slice from a constant", "(d0) -> (d0 + 4), domain: d0 in [0, 1]"),
        ("gather at an iota", "(d0, d1, d2) -> (d0, d2), domain: d0 in [0, 4], d1 in [0, 0], d2 in [0, 2]"),
    ):
        of = view(name)
        needed = indexing_of_operands(of, of.roots[0])[of.parameters[0].result]
        assert needed is not None
        assert [indexing.map for indexing in needed] == [IndexingMap.parse(wanted)]


def test_what_lies_behind_an_op_without_a_map_is_unknown() -> None:
    text = f"""{ADD.replace("s32", "f32")}
    cmp {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }}
    ENTRY e {{ p = f32[4] parameter(0) q = f32[4] parameter(1) s = f32[4] sort(p), dimensions={{0}}, to_apply=cmp
      ROOT r = f32[4] add(s, q) }}"""
    of = view_of_entry(text)
    rows = {row.target.instruction_name.data: row.indexings for row in indexing_rows(of)}
    assert rows["p"] is None
    assert rows["q"] is not None
    assert "    unknown" in print_rows(indexing_rows(of)).splitlines()
    assert next(row for row in rows_as_json(indexing_rows(of)) if row["to"] == "p")["maps"] is None


def test_the_seeds_transpose() -> None:
    """The seed: from [20,40] to [40,20] it is (d0, d1) -> d1 and (d0, d1) -> d0."""
    text = "ENTRY e { p = f32[20,40] parameter(0) ROOT r = f32[40,20] transpose(p), dimensions={1,0} }"
    of = view_of_entry(text)
    assert print_rows(indexing_rows(of)) == (
        "%r f32[40,20]\n  %p f32[20,40]\n    (d0, d1) -> (d1, d0), domain: d0 in [0, 39], d1 in [0, 19]"
    )


def test_an_instruction_can_be_asked_for() -> None:
    of = view("a row sum of a transpose")
    (row, *_) = indexing_rows(of, instruction="t")
    assert (row.source.instruction_name.data, row.target.instruction_name.data) == ("t", "p")
    with pytest.raises(UsageError, match="no instruction 'x'"):
        indexing_rows(of, instruction="x")
