"""JAX functions as programs: trees in and out, what JAX drops and converts, its stages, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xla_emitters.device import device
from xla_emitters.errors import DataError, ToolError, Unsupported, UsageError
from xla_emitters.explore import jax_program
from xla_emitters.explore.compile import compile
from xla_emitters.explore.jax_program import JaxProgram, from_jax, is_stage
from xla_emitters.explore.xla import description

os.environ.setdefault("JAX_PLATFORMS", "cpu")
X = np.arange(24, dtype=np.float32).reshape(4, 6) / 7


@pytest.fixture(scope="module")
def jax() -> Any:
    pytest.importorskip("jaxlib", reason="the extra [jax] is not installed")
    return pytest.importorskip("jax", reason="the extra [jax] is not installed")


def two(x: Any) -> Any:
    return x * 2 + 1, x > 1


def test_trees_go_in_and_come_out(jax: Any) -> None:
    def function(pair: Any, scale: Any) -> Any:
        return {"sum": [pair["a"] * scale + pair["b"][0]], "none": None}

    arguments = ({"a": X, "b": (X + 3,)}, 2.0)
    program = from_jax(function, *arguments, stage="llvm-dialect")
    assert isinstance(program, JaxProgram)
    result = program(*arguments)
    assert result["none"] is None
    np.testing.assert_allclose(result["sum"][0], X * 2 + X + 3, rtol=1e-6)
    np.testing.assert_array_equal(program.run_cpu(*arguments, stage="scf")["sum"][0], result["sum"][0])


def test_arguments_without_use_are_dropped(jax: Any) -> None:
    program = from_jax(lambda x, unused, y: x - y, X, np.ones(3), X + 1, stage="llvm-dialect")
    assert len(program.parameters) == 2
    np.testing.assert_array_equal(program(X, np.ones(3), X + 1), X - (X + 1))


def test_the_answer_is_of_the_callers_family(jax: Any) -> None:
    program = from_jax(two, X, stage="llvm-dialect")
    assert {type(leaf) for leaf in program(X)} == {np.ndarray}
    assert all(isinstance(leaf, jax.Array) for leaf in program(jax.numpy.asarray(X)))


def test_arguments_are_converted_as_jax_converts_them(jax: Any) -> None:
    """64 bits become 32, numbers get the parameter's type, a random key is its bits; another type is refused."""
    program = from_jax(two, X, stage="llvm-dialect")
    np.testing.assert_array_equal(program(X.astype(np.float64))[0], program(X)[0])
    number = from_jax(lambda n: n * 3, 2, stage="llvm-dialect")
    assert (number(5), number.results[0].dtype) == (15, "s32")
    key = jax.random.key(1)
    bits = from_jax(lambda key: jax.random.bits(key, (3,)), key, stage="llvm-dialect")
    np.testing.assert_array_equal(bits(key), jax.random.bits(key, (3,)))
    with pytest.raises(DataError, match=r"argument 0 \(p0, arguments\[0\]\) .*float16"):
        program(X.astype(np.float16))


def test_another_tree_is_refused_with_both(jax: Any) -> None:
    program = from_jax(lambda d: d["a"] * 2, {"a": X}, stage="llvm-dialect")
    with pytest.raises(DataError, match=r"takes .*'a'.*; .*'b'.* was given"):
        program({"b": X})


def test_an_array_that_does_not_fit_is_named_by_its_path(jax: Any) -> None:
    """JAX drops the argument without use, and p0 is the second leaf."""
    program = from_jax(lambda unused, tree: tree["a"][1] * 2, X, {"a": (X, X)}, stage="llvm-dialect")
    with pytest.raises(DataError, match=r"argument 0 \(p0, arguments\[1\]\['a'\]\[1\]\) has shape \[2, 6\]"):
        program(X, {"a": (X, X[:2])})


def test_functions_without_arguments(jax: Any) -> None:
    np.testing.assert_array_equal(from_jax(lambda: jax.numpy.arange(5) * 2, stage="llvm-dialect")(), np.arange(5) * 2)


def test_donated_and_static_arguments(jax: Any) -> None:
    """A donated argument's memory is the result's; the caller's array is left as it was."""
    jitted = jax.jit(lambda x, n: x.at[n].add(1.0), donate_argnums=0, static_argnums=1)
    given = X.copy()
    program = compile(jitted.trace(given, 2).lower(lowering_platforms=("cuda",)), stage="llvm-dialect")
    assert "input_output_alias" in program.hlo
    expected = X.copy()
    expected[2] += 1
    np.testing.assert_array_equal(program(given), expected)
    np.testing.assert_array_equal(given, X)


def test_every_stage_of_jax_is_taken(jax: Any) -> None:
    jitted = jax.jit(two)
    exported = jax.export.export(jitted, platforms=["cuda"])(X)
    for source in (jitted.trace(X), jitted.lower(X), exported):
        assert is_stage(source)
        np.testing.assert_allclose(compile(source, stage="llvm-dialect")(X)[0], X * 2 + 1, rtol=1e-6)


def test_flags_reach_xla(jax: Any) -> None:
    passes = {"xla_disable_hlo_passes": "triton-softmax-rewriter,fusion-block-level-rewriter"}
    program = from_jax(jax.nn.softmax, X, flags=passes, stage="llvm-dialect")
    assert "__triton" not in program.hlo
    np.testing.assert_allclose(program(X), jax.nn.softmax(X), rtol=1e-5)


def test_what_was_compiled_for_a_cpu_is_refused_with_the_way_out(jax: Any) -> None:
    with pytest.raises(Unsupported, match="compiled for 'cpu'") as raised:
        compile(jax.jit(two).lower(X).compile())
    assert "trace(x).lower" in raised.value.help


def test_what_was_compiled_for_a_gpu_is_taken_with_its_constants(jax: Any) -> None:
    """JAX compiles for a GPU that is described, too; only then is there no need for one."""
    topologies = pytest.importorskip("jax.experimental.topologies")
    h200 = {"target_config": description(device("h200")), "topology": "1x1x1"}
    place = jax.sharding.SingleDeviceSharding(topologies.get_topology_desc("", "cuda", **h200).devices[0])
    table = np.arange(24, dtype=np.float32).reshape(4, 6) ** 2
    lowered = jax.jit(lambda unused, x: {"y": x + table}, in_shardings=place).lower(X, X)
    compiled = lowered.compile(compiler_options={"xla_gpu_autotune_level": 0})
    np.testing.assert_array_equal(compile(compiled, stage="llvm-dialect")(X, X)["y"], X + table)
    with pytest.raises(UsageError, match="flags come too late"):
        compile(compiled, flags={"xla_gpu_autotune_level": 0})


def test_static_exports_that_are_not_for_cuda_are_refused(jax: Any) -> None:
    with pytest.raises(Unsupported, match="exported for cpu"):
        compile(jax.export.export(jax.jit(two), platforms=["cpu"])(X))


@pytest.mark.parametrize("counts", [(2, 1), (1, 2)])
def test_several_devices_are_refused(counts: tuple[int, int]) -> None:
    text = f"module attributes {{mhlo.num_partitions = {counts[0]} : i32, mhlo.num_replicas = {counts[1]} : i32}} {{}}"
    lowered = SimpleNamespace(as_text=lambda **_: text)
    with pytest.raises(Unsupported, match="this is for 2 devices"):
        jax_program._of_lowered(lowered)


def test_an_export_with_symbolic_sizes_runs_at_any(jax: Any) -> None:
    b, s = jax.export.symbolic_shape("b, s")
    x, w = jax.ShapeDtypeStruct((b, 2 * s), np.float32), jax.ShapeDtypeStruct((2 * s, 3), np.float32)
    program = compile(jax.export.export(jax.jit(lambda x, w: {"y": x @ w, "rows": x.shape[0]}))(x, w))
    for rows, half in ((1, 1), (4, 2)):
        found = program(np.ones((rows, 2 * half), np.float32), np.ones((2 * half, 3), np.float32))
        np.testing.assert_array_equal(found["y"], np.full((rows, 3), 2 * half, np.float32))
        assert found["rows"] == rows
    with pytest.raises(DataError, match="Division had remainder 1 when computing the value of 's'"):
        program(np.ones((2, 3), np.float32), np.ones((3, 3), np.float32))


def test_dynamic_keeps_the_sizes_that_shapes_names(jax: Any) -> None:
    program = from_jax(lambda tree: tree["a"] + tree["b"], {"a": X, "b": X}, dynamic=True, shapes="b, s")
    assert program.symbols == ("b", "s")
    y = np.ones((3, 1), np.float32)
    np.testing.assert_array_equal(program({"a": y, "b": y}), 2 * y)
    with pytest.raises(DataError, match="takes"):
        program(y)


def test_dynamic_without_a_symbolic_size_is_refused(jax: Any) -> None:
    with pytest.raises(UsageError, match="no argument has a symbolic size"):
        from_jax(two, X, dynamic=True)
    with pytest.raises(UsageError, match="are for dynamic=True"):
        from_jax(two, X, shapes="b, s")


def test_flags_without_xla_are_refused() -> None:
    with pytest.raises(UsageError, match="flags are for XLA"):
        compile("HloModule m\n", flags={"xla_gpu_autotune_level": 0})


def test_what_is_not_jaxs_is_no_stage() -> None:
    class Lowered: ...

    assert not is_stage(Lowered())
    assert not is_stage("HloModule m\n")


def test_without_jax_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"No module named '{name}'")

    monkeypatch.setattr(jax_program, "import_module", missing)
    with pytest.raises(ToolError, match="JAX is not installed") as raised:
        from_jax(two, X)
    assert "[jax,ptxas]" in raised.value.help


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_program_of_jax_is_one_screen_with_lines_of_python(jax: Any, dynamic: bool) -> None:
    """`repr` and the card of what `from_jax` returns; the softmax is called on the marked line of this file."""

    def function(x: Any) -> Any:
        return jax.nn.softmax(x * 2)  # here

    given: Any = {"dynamic": True, "shapes": ("b, s",)} if dynamic else {"stage": "llvm-dialect"}
    program = from_jax(function, np.ones((12, 40), "float32"), **given)
    said = repr(program)
    assert len(said.splitlines()) <= 20
    assert len(program._repr_html_()) < 200_000
    number = next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.endswith("# here"))
    assert f"test_jax_program.py:{number} in " in said
    assert f"test_jax_program.py:{number} in " in program.explain()
