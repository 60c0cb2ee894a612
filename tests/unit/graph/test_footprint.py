"""The elements that a fusion needs of its parameters, against sets of indices enumerated by NumPy and by hand."""

import numpy as np
import pytest

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.graph import footprint
from xla_emitters.graph.control_computations import kernel_sources
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.footprint import NeededElements, needed, needed_of_parameters
from xla_emitters.graph.indexing_analysis import Indexing
from xla_emitters.graph.view import view_of
from xla_emitters.pipelines.compiler import read_module

MAPS = (
    ("(d0, d1) -> (d0, d1), domain: d0 in [0, 5], d1 in [0, 7]", (6, 8)),
    ("(d0, d1) -> (d1), domain: d0 in [0, 5], d1 in [0, 7]", (8,)),
    ("(d0) -> (d0 * 3), domain: d0 in [0, 6]", (20,)),
    ("(d0) -> (d0 floordiv 4, d0 mod 4), domain: d0 in [0, 30]", (8, 4)),
    ("(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 6], d1 in [0, 3]", (40,)),
    ("(d0, d1) -> (d0 + d1, d1), domain: d0 in [0, 6], d1 in [0, 3]", (10, 4)),
    ("(d0) -> (d0), domain: d0 in [0, 19], d0 mod 4 in [0, 1]", (20,)),
    ("(d0)[s0] -> (d0, s0, 2), domain: d0 in [0, 3], s0 in [0, 5]", (4, 6, 3)),
)


@pytest.mark.parametrize(("text", "shape"), MAPS)
@pytest.mark.parametrize("most", [0, 16, 1 << 20])
def test_the_image_of_a_map(text: str, shape: tuple[int, ...], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact where it says so, never too small, whether all of the map, groups of its results or nothing is enumerated."""
    monkeypatch.setattr(footprint, "MOST_POINTS", most)
    m = IndexingMap.parse(text)
    image = {m.evaluate(dims, symbols) for dims, symbols in m.points()}
    found = needed(shape, [Indexing(m)])
    assert found.elements == len(image) if found.exact else len(image) <= found.elements <= np.prod(shape)
    assert found.exact or most < 1 << 20


def test_the_union_of_two_windows() -> None:
    left = IndexingMap.parse("(d0) -> (d0), domain: d0 in [0, 6]")
    right = IndexingMap.parse("(d0) -> (d0 + 3), domain: d0 in [0, 6]")
    assert needed([20], [Indexing(left), Indexing(right)]) == NeededElements(10, True)


def test_nothing_is_needed_of_a_parameter_without_users() -> None:
    assert needed([20], []) == NeededElements(0, True)


FUSION = """HloModule m
f {{
{body}
}}
ENTRY e {{
{parameters}
  ROOT fusion = {result} fusion({names}), kind=kLoop, calls=f
}}
"""


def of_fusion(body: str, result: str, *types: str) -> tuple[NeededElements | None, ...]:
    parameters = "\n".join(f"  p{n} = {each} parameter({n})" for n, each in enumerate(types))
    names = ", ".join(f"p{n}" for n in range(len(types)))
    text = FUSION.format(body=f"{parameters}\n{body}", parameters=parameters, result=result, names=names)
    module = read_module(text)
    assert entry_of(module) is not None
    (source,) = kernel_sources(module, None)
    return needed_of_parameters(view_of(source))


def test_a_broadcast_row_is_needed_once() -> None:
    body = "  b = f32[64,4096] broadcast(p1), dimensions={1}\n  ROOT s = f32[64,4096] add(p0, b)"
    assert of_fusion(body, "f32[64,4096]", "f32[64,4096]", "f32[4096]") == (
        NeededElements(262144, True),
        NeededElements(4096, True),
    )


def test_large_arrays_are_counted_without_being_enumerated() -> None:
    body = "  ROOT t = f32[8192,16384] transpose(p0), dimensions={1,0}"
    assert of_fusion(body, "f32[8192,16384]", "f32[16384,8192]") == (NeededElements(1 << 27, True),)


def test_a_slice_needs_its_elements() -> None:
    body = "  ROOT s = f32[10,5] slice(p0), slice={[0:20:2], [3:8]}"
    assert of_fusion(body, "f32[10,5]", "f32[40,40]") == (NeededElements(50, True),)


def test_a_gather_needs_at_most_a_row_for_each_index() -> None:
    body = """  i = s32[16,1] bitcast(p1)
  ROOT g = f32[16,1,8] gather(p0, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,8}"""
    assert of_fusion(body, "f32[16,1,8]", "f32[1000,8]", "s32[16]") == (
        NeededElements(128, False),
        NeededElements(16, True),
    )
