"""The partitioner: which instructions share a function. Graphs are the seed's, and ones whose answer follows from its two criteria."""

import random
import time

import pytest

from xla_emitters.algebra.shape_maps import identity_map
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.types import dims_of
from xla_emitters.emitters.partitioner import NESTING_LIMIT, Epilogue, PartitionedComputation, partition, post_order
from xla_emitters.graph.entry import entry_of
from xla_emitters.rewrite.kernel_entry import sanitize
from xla_emitters.text.hlo import parse_hlo


def computation(body: str, name: str = "f") -> ComputationOp:
    module = parse_hlo(f"HloModule m\n\nENTRY {name} {{\n{body}\n}}\n")
    return entry_of(module)


def groups(body: str) -> list[str]:
    """The instructions of each subgraph, operands first."""
    subgraphs = partition(computation(body)).subgraphs
    return [" ".join(op.instruction_name.data for op in subgraph.instructions) for subgraph in subgraphs]


def test_an_operand_read_at_two_indices_is_a_function_of_its_own():
    """The seed's first graph: `log` is read at two indices. `transpose` has one user and goes with it."""
    body = """
      param = f32[20,20] parameter(0)
      log = f32[20,20] log(param)
      transpose = f32[20,20] transpose(log), dimensions={1,0}
      ROOT add = f32[20,20] add(log, transpose)
    """
    assert groups(body) == ["transpose add", "param log"]
    assert [s.name for s in partition(computation(body)).subgraphs] == ["f_add", "f_log"]


def test_slice_and_pad_of_one_operand():
    """The seed's second graph: `add` is read at two indices."""
    body = """
      p0 = f32[20] parameter(0)
      p1 = f32[20] parameter(1)
      zero = f32[] constant(0)
      add = f32[20] add(p0, p1)
      slice = f32[10] slice(add), slice={[5:15]}
      slice0 = f32[8] slice(add), slice={[0:8]}
      pad = f32[10] pad(slice0, zero), padding=0_2
      ROOT multiply = f32[10] multiply(slice, pad)
    """
    assert groups(body) == ["slice slice0 zero pad multiply", "p0 p1 add"]


def test_operands_read_by_several_users_at_one_index_stay_together():
    body = """
      p = f32[8,4] parameter(0)
      e = f32[8,4] exponential(p)
      a = f32[8,4] negate(e)
      b = f32[8,4] abs(e)
      ROOT r = f32[8,4] add(a, b)
    """
    assert groups(body) == ["p e a b r"]


def test_two_transposes_that_read_the_same_index_stay_together():
    body = """
      p = f32[8,4] parameter(0)
      e = f32[8,4] exponential(p)
      a = f32[4,8] transpose(e), dimensions={1,0}
      b = f32[4,8] transpose(e), dimensions={1,0}
      ROOT r = f32[4,8] add(a, b)
    """
    assert groups(body) == ["p e a b r"]


def test_equal_indices_are_found_by_simplification():
    """A transpose there and back is the identity."""
    body = """
      p = f32[8,4] parameter(0)
      e = f32[8,4] exponential(p)
      t = f32[4,8] transpose(e), dimensions={1,0}
      back = f32[8,4] transpose(t), dimensions={1,0}
      ROOT r = f32[8,4] add(e, back)
    """
    assert groups(body) == ["p e t back r"]


def test_a_parameter_read_at_two_indices_is_a_function_too():
    body = """
      p = f32[8,8] parameter(0)
      t = f32[8,8] transpose(p), dimensions={1,0}
      ROOT r = f32[8,8] add(p, t)
    """
    partitioned = partition(computation(body))
    assert [s.name for s in partitioned.subgraphs] == ["f_r", "f_p"]
    assert [s.moves_only for s in partitioned.subgraphs] == [False, True]


def test_an_operand_that_is_cut_off_is_not_read():
    """The slice takes only what comes from `a`; through it, `e` is read at one index."""
    body = """
      p = f32[8] parameter(0)
      e = f32[8] exponential(p)
      c = f32[16] concatenate(e, e), dimensions={0}
      ROOT s = f32[8] slice(c), slice={[0:8]}
    """
    assert groups(body) == ["p e c s"]


def test_what_the_root_does_not_need_is_in_no_function():
    body = """
      p = f32[8] parameter(0)
      unused = f32[8] parameter(1)
      dead = f32[8] negate(unused)
      ROOT r = f32[8] abs(p)
    """
    assert groups(body) == ["p r"]


def test_a_tuple_is_one_function_of_its_elements():
    body = """
      p = f32[8,64] parameter(0)
      a = f32[8,64] negate(p)
      b = f32[512] reshape(p)
      ROOT t = (f32[8,64], f32[512]) tuple(a, b)
    """
    partitioned = partition(computation(body))
    assert groups(body) == ["a b t", "p"]
    assert partitioned.root.index_dims == (8, 64)


def test_an_instruction_can_be_made_to_start_a_function():
    body = """
      p = f32[8] parameter(0)
      hero = f32[8] exponential(p)
      ROOT r = f32[8] negate(hero)
    """
    partitioned = partition(computation(body), lambda op: op.opcode == "exponential")
    assert [s.name for s in partitioned.subgraphs] == ["f_r", "f_hero"]


def diamond(depth: int, swap: bool) -> str:
    """x(i+1) = x(i) + x(i), or + its transpose: 2^depth paths from the root to the parameter."""
    lines = ["x0 = f32[8,8] parameter(0)"]
    for i in range(depth):
        other = f"x{i}"
        if swap:
            other = f"t{i}"
            lines.append(f"t{i} = f32[8,8] transpose(x{i}), dimensions={{1,0}}")
        lines.append(f"{'ROOT ' if i == depth - 1 else ''}x{i + 1} = f32[8,8] add(x{i}, {other})")
    return "\n".join(lines)


@pytest.mark.parametrize("swap", [False, True])
def test_diamonds_sixty_deep_are_linear(swap: bool):
    made = computation(diamond(60, swap))
    start = time.perf_counter()
    partitioned = partition(made)
    assert time.perf_counter() - start < 2
    assert len(partitioned.subgraphs) == (61 if swap else 1)
    # A map that grew with the depth would show in the operands' common index: all that is compared is one step long.
    assert sum(len(s.instructions) for s in partitioned.subgraphs) == (121 if swap else 61)


def chain(length: int) -> str:
    lines = ["x0 = f32[8] parameter(0)"]
    lines += [f"x{i + 1} = f32[8] negate(x{i})" for i in range(length - 1)]
    return "\n".join([*lines, f"ROOT x{length} = f32[8] negate(x{length - 1})"])


def test_a_long_chain_is_cut_at_the_limit():
    sizes = [len(s.instructions) for s in partition(computation(chain(5000))).subgraphs]
    assert sizes == [2000, 2000, 1001]


def test_a_large_graph_is_cut_only_where_one_value_goes_across():
    """Each instruction uses one of the eight before it: a cut anywhere would make its functions compute the same things."""
    draw = random.Random(0)
    lines = ["p = f32[4] parameter(0)"]
    lines += [f"v{i} = f32[4] add({_before(i)}, {_before(i - draw.randrange(8))})" for i in range(2500)]
    lines += ["w0 = f32[4] negate(v2499)", *(f"w{i} = f32[4] negate(w{i - 1})" for i in range(1, 2500))]
    lines[-1] = "ROOT " + lines[-1]
    sizes = [len(subgraph.instructions) for subgraph in partition(computation("\n".join(lines))).subgraphs]
    assert (sizes[0], sum(sizes)) == (2000, 5001)
    assert len(sizes) <= 4  # a few near the parameter, where nothing else is left


def _before(number: int) -> str:
    return f"v{number - 1}" if number > 0 else "p"


def test_post_order_has_operands_first_and_each_once():
    made = computation(diamond(30, True))
    order = list(post_order(made))
    seen = set[object]()
    for op in order:
        assert all(operand.owner in seen for operand in op.operands)
        seen.add(op)
    assert len(order) == len(seen) == 61


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("fused_computation.1_add.3", "fused_computation_1_add_3"),
        ("a-b/c", "a_b_c"),
        ("2nd", "_2nd"),
        ("", "__unnamed"),
        ("_", "__"),
        ("$", "_$"),
        ("ok_$9", "ok_$9"),
    ],
)
def test_names_of_functions(name: str, function: str):
    assert sanitize(name) == function


def test_the_dump():
    body = """
      p = f32[8,4]{0,1} parameter(0)
      b = f32[4,8]{1,0} bitcast(p)
      e = f32[4,8] exponential(b)
      t = f32[8,4] transpose(e), dimensions={1,0}
      n = f32[4,8] negate(e)
      u = f32[8,4] transpose(n), dimensions={1,0}
      ROOT r = f32[8,4] add(t, u)
    """
    assert str(partition(computation(body))) == (
        "PartitionedComputation f:\n"
        "SUBGRAPH f_r {\n"
        "  %p = f32[8,4]{0,1} parameter(0)\n"
        "  %b = f32[4,8]{1,0} bitcast(%p)\n"
        "  %e = f32[4,8]{1,0} exponential(%b)\n"
        "  %t = f32[8,4]{1,0} transpose(%e)\n"
        "  %n = f32[4,8]{1,0} negate(%e)\n"
        "  %u = f32[8,4]{1,0} transpose(%n)\n"
        "  ROOT %r = f32[8,4]{1,0} add(%t, %u)\n"
        "}"
    )


def test_the_first_subgraph_is_the_roots():
    partitioned: PartitionedComputation = partition(computation(diamond(3, True)))
    assert partitioned.root.root is computation_root(partitioned)


def computation_root(partitioned: PartitionedComputation) -> object:
    return partitioned.computation.root.owner


def test_what_is_read_apart_is_nobody_elses():
    """The update reads `n` in a branch, the add reads it outside of it: the same index, but code in the branch is not there for the add."""
    body = """
      p = f32[64] parameter(0)
      u = f32[4] parameter(1)
      i = s32[] parameter(2)
      n = f32[64] negate(p)
      d = f32[64] dynamic-update-slice(n, u, i)
      ROOT r = f32[64] add(d, n)
    """
    assert groups(body) == ["u i d r", "p n"]


def test_windows_at_different_places_are_different_readings():
    """The maps are equal, but each slice has a start of its own."""
    body = """
      p = f32[64] parameter(0)
      i = s32[] parameter(1)
      j = s32[] parameter(2)
      n = f32[64] negate(p)
      a = f32[4] dynamic-slice(n, i), dynamic_slice_sizes={4}
      b = f32[4] dynamic-slice(n, j), dynamic_slice_sizes={4}
      ROOT r = f32[4] add(a, b)
    """
    assert groups(body) == ["i a j b r", "p n"]


def test_regions_stand_in_one_another_only_so_deep():
    lines = ["x0 = f32[64] parameter(0)", "u = f32[4] parameter(1)", "i = s32[] parameter(2)"]
    lines += [f"x{k + 1} = f32[64] dynamic-update-slice(x{k}, u, i)" for k in range(50)]
    sizes = [len(group.split()) for group in groups("\n".join([*lines[:-1], f"ROOT {lines[-1]}"]))]
    assert max(sizes) <= NESTING_LIMIT + 4


def with_epilogue(body: str, roots: str, heroes: str) -> PartitionedComputation:
    """Partitioned with one epilogue of instructions of one shape, named with spaces between them."""
    made = computation(body)
    named = {op.instruction_name.data: op for op in post_order(made)}
    ends = [named[name] for name in roots.split()]
    maps = tuple(identity_map(dims_of(root.result)) for root in ends)
    return partition(made, epilogues=[Epilogue(tuple(ends), tuple(named[name] for name in heroes.split()), maps)])


def members(partitioned: PartitionedComputation) -> tuple[str, list[str]]:
    """The instructions of the epilogue, and of every other subgraph."""
    (epilogue,) = partitioned.epilogues
    groups = [[op.instruction_name.data for op in s.instructions] for s in (epilogue, *partitioned.subgraphs)]
    first, *others = (" ".join(group) for group in groups)
    return first, others


def test_a_hero_ends_a_subgraph_on_both_sides():
    """What it reads is a function, and so is what is made of its element."""
    body = """
      p = f32[8,4] parameter(0)
      e = f32[8,4] exponential(p)
      t = f32[4,8] transpose(e), dimensions={1,0}
      ROOT a = f32[4,8] abs(t)
    """
    partitioned = with_epilogue(body, "a", "t")
    assert members(partitioned) == ("a", ["a", "t", "p e"])
    assert partitioned.epilogues[0].name == "f__epilogue__a"
    assert partitioned.summary.endswith("f__epilogue__a (1 instruction)")
    assert str(partitioned).endswith("SUBGRAPH f__epilogue__a {\n  ROOT %a = f32[4,8]{1,0} abs(%t)\n}")


def test_a_root_that_is_its_hero_has_an_empty_epilogue():
    body = """
      p = f32[8,4] parameter(0)
      ROOT t = f32[4,8] transpose(p), dimensions={1,0}
    """
    assert members(with_epilogue(body, "t", "t")) == ("", ["t", "p"])


def test_an_epilogue_has_what_depends_on_the_hero_and_what_nobody_else_computes():
    """`x` is read for `n` alone and goes with it; `y` is a function of its own, read at two indices."""
    body = """
      p = f32[8,8] parameter(0)
      q = f32[8,8] parameter(1)
      t = f32[8,8] transpose(p), dimensions={1,0}
      x = f32[8,8] exponential(q)
      n = f32[8,8] add(t, x)
      y = f32[8,8] logistic(q)
      z = f32[8,8] reverse(y), dimensions={0}
      m = f32[8,8] multiply(n, y)
      ROOT r = f32[8,8] subtract(m, z)
    """
    epilogue, others = members(with_epilogue(body, "r", "t"))
    assert sorted(epilogue.split()) == ["m", "n", "r", "x", "z"]
    assert "y" in others
    assert "p" in others


def test_one_epilogue_of_several_roots_and_heroes():
    body = """
      p = f32[8,8] parameter(0)
      t = f32[8,8] transpose(p), dimensions={1,0}
      n = f32[8,8] negate(p)
      u = f32[8,8] transpose(n), dimensions={1,0}
      a = f32[8,8] add(t, u)
      b = f32[8,8] abs(u)
      ROOT r = (f32[8,8], f32[8,8], f32[8,8]) tuple(a, b, t)
    """
    partitioned = with_epilogue(body, "a b t", "t u")
    assert members(partitioned)[0] == "a b"
    (epilogue,) = partitioned.epilogues
    assert [op.instruction_name.data for op in (*epilogue.roots, *epilogue.injected)] == ["a", "b", "t", "t", "u"]


@pytest.mark.parametrize("swap", [False, True])
def test_epilogues_of_deep_diamonds_are_linear(swap: bool):
    """2^60 paths, before and after the hero."""
    lines = diamond(60, swap).replace("ROOT ", "").split("\n")
    lines.append("hero = f32[8,8] transpose(x60), dimensions={1,0}")
    lines += [f"y{i + 1} = f32[8,8] add({f'y{i}' if i else 'hero'}, {f'y{i}' if i else 'hero'})" for i in range(60)]
    start = time.monotonic()
    epilogue, _ = members(with_epilogue("\n".join([*lines[:-1], f"ROOT {lines[-1]}"]), "y60", "hero"))
    assert epilogue.split() == [f"y{i + 1}" for i in range(60)]
    assert time.monotonic() - start < 5
