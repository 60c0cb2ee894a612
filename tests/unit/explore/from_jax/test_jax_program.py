"""JAX functions as programs: trees in and out, what JAX drops and converts, its stages, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools_here import PTX, needs
from unit.runtime.fake_gpu import fake_cupy

from xla_emitters.device import device
from xla_emitters.errors import DataError, ToolError, Unsupported, UsageError
from xla_emitters.explore import optimized_texts
from xla_emitters.explore.compile import compile
from xla_emitters.explore.from_jax import jax_program
from xla_emitters.explore.from_jax.jax_program import JaxProgram, from_jax, is_stage
from xla_emitters.explore.real_xla import description
from xla_emitters.program import compiled
from xla_emitters.program.steps import Launch, Move

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


@pytest.mark.parametrize("shapes", [None, ("b, 6",)])
def test_arrays_of_any_byte_order_but_none_with_a_mask(jax: Any, shapes: tuple[str, ...] | None) -> None:
    given: dict[str, Any] = {"dynamic": True, "shapes": shapes} if shapes else {}
    program = from_jax(two, X, stage="llvm-dialect", **given)
    np.testing.assert_array_equal(program(X.astype(">f4"))[0], X * 2 + 1)
    with pytest.raises(DataError, match=r"argument 0 \(p0, arguments\[0\]\) is a masked array"):
        program(np.ma.masked_less(X, 1))


def test_a_program_with_static_arguments_can_be_a_key(jax: Any) -> None:
    program = from_jax(jax.jit(lambda x, n: x * n, static_argnums=1), X, 3, stage="llvm-dialect")
    assert {program: "tripled"}[program] == "tripled"


@needs(*PTX)
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_jaxs_arrays_on_a_gpu_come_out_as_jaxs(jax: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """On the fake CuPy, for which the memory of the host is a GPU's; no array is copied through NumPy."""
    x = jax.numpy.asarray(X).astype(name)
    program = from_jax(two, x)
    monkeypatch.setattr(compiled, "_CUDA_OF_DLPACK", (x.__dlpack_device__()[0],))
    with fake_cupy() as cupy:
        doubled, is_large = program(x)
        assert cupy.launches
    assert isinstance(doubled, jax.Array)
    assert isinstance(is_large, jax.Array)
    assert (doubled.dtype, is_large.dtype) == (x.dtype, bool)
    np.testing.assert_array_equal(np.asarray(doubled), np.asarray(two(x)[0]))
    np.testing.assert_array_equal(np.asarray(is_large), np.asarray(x > 1))


def test_what_jax_donates_is_updated_where_it_is(jax: Any) -> None:
    """`donate_argnums`: one kernel writes a row of the cache; a call keeps the caller's cache, and `donate=True` gives it away."""

    def update(cache: Any, row: Any, at: Any) -> Any:
        return jax.lax.dynamic_update_slice(cache, row, (at, 0))

    cache, row, at = np.zeros((64, 8), np.float32), np.ones((1, 8), np.float32), np.int32(3)
    wanted = np.asarray(update(cache, row, at))
    program = from_jax(jax.jit(update, donate_argnums=0), cache, row, at, stage="llvm-dialect")
    assert [type(step) for step in program.steps] == [Move, Launch]
    assert program.kernels[0].launch.threads == 8
    np.testing.assert_array_equal(program(cache, row, at), wanted)
    assert not cache.any()
    (found,) = program.run([cache, row, np.asarray(at)], donate=True)
    np.testing.assert_array_equal(found, wanted)
    assert np.may_share_memory(found, cache)


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
    for given, said in [
        (({"b": X},), r"arguments\[0\]\['a'\] is missing, arguments\[0\]\['b'\] is not taken"),
        ((), r"arguments\[0\]\['a'\] is missing"),
        (({"a": X}, X), r"arguments\[1\] is not taken"),
        (({"a": [X]},), r"arguments\[0\]\['a'\] is missing, arguments\[0\]\['a'\]\[0\] is not taken"),
    ]:
        with pytest.raises(DataError, match=said) as found:
            program(*given)
        assert found.value.details == ("it takes {'a': *}",)
    with pytest.raises(DataError, match=r"keywords\['k'\] is not taken"):
        program({"a": X}, k=1)


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


def test_whole_arrays_in_and_out_of_eight_devices(jax: Any) -> None:
    """A mesh without devices: this process has one."""
    p, lax = jax.sharding.PartitionSpec, jax.lax
    w = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    x = np.arange(64, dtype=np.float32).reshape(16, 4) / 8

    def f(x: Any, given: Any) -> Any:
        return {"y": lax.with_sharding_constraint(x @ given["w"], p("x", "y")), "sum": x.sum(0)}

    axes = {"x": 2, "y": 4}
    shardings = (p("x"), {"w": p(None, "y")})
    program = from_jax(f, x, {"w": w}, devices=8, mesh=axes, in_shardings=shardings, stage="llvm-dialect")
    assert program.devices == 8
    found = program(x, {"w": w})
    np.testing.assert_allclose(found["y"], x @ w, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["sum"], x.sum(0), rtol=1e-6)
    with pytest.raises(DataError, match=r"shape \[8, 4\], but f32\[16,4\]"):
        program(x[:8], {"w": w})

    mesh = jax.sharding.AbstractMesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sums = jax.shard_map(lambda part: lax.psum(part, "x"), mesh=mesh, in_specs=p("x"), out_specs=p())
    np.testing.assert_allclose(from_jax(sums, x, stage="llvm-dialect")(x), x.reshape(4, 4, 4).sum(0), rtol=1e-6)
    with pytest.raises(UsageError, match="is for 4 devices, not for 2"):
        from_jax(sums, x, devices=2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"devices": 4, "mesh": {"x": 8}}, "the mesh has 8 devices, not 4"),
        ({"mesh": {"x": 0}}, "this is no mesh: {'x': 0}"),
        ({"mesh": 3}, "this is no mesh: 3"),
        ({"mesh": {"x": 2}, "dynamic": True, "shapes": "b, s"}, "unknown sizes is for one device"),
    ],
)
def test_a_mesh_that_is_none(jax: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_jax(two, X, **given)
    with pytest.raises(UsageError, match=r"in_shardings has .*, which is on a mesh"):
        from_jax(two, X, in_shardings=jax.sharding.PartitionSpec("x"))


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

    jax_program.jax_package.cache_clear()  # other tests may have found JAX
    monkeypatch.setattr(jax_program, "import_module", missing)
    with pytest.raises(ToolError, match="JAX is not installed") as raised:
        from_jax(two, X)
    assert "[jax,ptxas]" in raised.value.help


def callbacks(jax: Any) -> list[tuple[str, Any]]:
    spec = jax.ShapeDtypeStruct(X.shape, X.dtype)
    io_callback = pytest.importorskip("jax.experimental").io_callback
    return [
        ("jax.debug.print", lambda x: (jax.debug.print("{}", x.sum()), x)[1]),
        ("jax.debug.callback", lambda x: (jax.debug.callback(print, x), x)[1]),
        ("jax.pure_callback", lambda x: jax.pure_callback(np.sin, spec, x)),
        ("jax.experimental.io_callback", lambda x: io_callback(np.sin, spec, x, ordered=True)),
        ("jax.debug.print", lambda x: jax.lax.fori_loop(0, 3, lambda i, a: (jax.debug.print("{}", i), a + 1)[1], x)),
        ("jax.debug.print", lambda x: jax.lax.cond(x[0, 0] > 0, lambda: (jax.debug.print(""), x)[1], lambda: x)),
        ("jax.debug.print", lambda x: jax.jit(lambda y: (jax.debug.print("{}", y), y)[1])(x)),
    ]


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_callback_is_named_with_the_line_that_wrote_it(jax: Any, dynamic: bool) -> None:
    for name, function in callbacks(jax):
        keywords: Any = {"dynamic": True, "shapes": ("4, n",)} if dynamic else {}
        if dynamic and "callback" in name and "debug" not in name:
            continue  # these have a result of known sizes
        with pytest.raises(Unsupported, match=rf"{name}.* calls Python on the host") as found:
            from_jax(function, X, **keywords)
        place = found.value.place
        assert place.file == __file__
        assert name.rpartition(".")[2] in place.text


def test_a_callback_in_a_lowered_function_is_named(jax: Any) -> None:
    for _, function in callbacks(jax):
        with pytest.raises(Unsupported, match=r"a callback \(custom call xla_\w*callback\) calls Python on the host"):
            compile(jax.jit(function).lower(X))


def test_static_arguments_are_given_or_left_out(jax: Any) -> None:
    jitted = jax.jit(lambda x, n, y: (x * n).reshape(n, -1) + y, static_argnums=1)
    program = from_jax(jitted, X, 3, 1.0, stage="llvm-dialect")
    np.testing.assert_array_equal(program(X, 3, 2.0), program(X, 2.0))
    np.testing.assert_array_equal(program.run_cpu(X, 3, 2.0), (X * 3).reshape(3, -1) + 2)
    with pytest.raises(DataError, match="argument 1 is static: the program is for 3, and 4 was given"):
        program(X, 4, 2.0)
    dynamic = from_jax(jax.jit(lambda x, n: x * n, static_argnames="n"), X, 3, dynamic=True, shapes=("n, 6",))
    np.testing.assert_array_equal(dynamic(X[:2], 3), X[:2] * 3)
    named = from_jax(jax.jit(lambda x, n: x * n, static_argnums=1), X, 3, dynamic=True, shapes=("n, 6", None))
    np.testing.assert_array_equal(named(X[:2]), X[:2] * 3)


def test_an_argument_that_must_be_static_is_named(jax: Any) -> None:
    for function, arguments, name in [
        (lambda x, n: x.reshape(n, -1), (X, 2), "n"),
        (lambda x, mode: x if mode == "a" else -x, (X, "a"), "mode"),
        (lambda x, flag: x if flag else -x, (X, True), "flag"),
    ]:
        with pytest.raises(UsageError, match=f"'{name}'") as found:
            from_jax(function, *arguments)
        assert f'static_argnames="{name}"' in found.value.help
    with pytest.raises(UsageError, match="from_jax has no option 'n'") as found:
        from_jax(lambda x, n: x * n, X, n=2)  # pyright: ignore[reportCallIssue]
    assert "functools.partial(f, n=...)" in found.value.help
    with pytest.raises(UsageError, match="takes a function, not 3"):
        from_jax(3, X)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (("n", "m"), "the function takes 1 argument, and shapes has 2 texts"),
        (("n*",), "syntax error in symbolic shape"),
        (("5, n",), "different size 5 for known dimension"),
        (5, "should be None or a string"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_in_their_words(jax: Any, shapes: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said) as found:
        from_jax(lambda x: x * 2, X, dynamic=True, shapes=shapes)
    assert found.value.message.startswith(f"shapes={shapes!r}: ")
    assert "a text for each argument" in found.value.help


def test_a_question_about_a_symbolic_size_is_refused(jax: Any) -> None:
    with pytest.raises(Unsupported, match="asks about a symbolic size"):
        from_jax(lambda x: x if x.shape[0] > 3 else -x, X, dynamic=True, shapes=("n, 6",))
    from_jax(lambda x: x if x.shape[0] > 3 else -x, X, dynamic=True, shapes=("n, 6",), constraints=("n >= 4",))


def test_xla_is_asked_once(jax: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = list[Any]()
    given, real = dict[str, str](), optimized_texts.optimize

    def counted(text: str, *words: Any, **keywords: Any) -> str:
        """XLA answers each text once, whatever the target and flags."""
        asked.append(words)
        if text not in given:
            given[text] = real(text, *words, **keywords)
        return given[text]

    monkeypatch.setattr(optimized_texts, "optimize", counted)
    monkeypatch.setenv("XLA_EMITTERS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("XLA_EMITTERS_DISABLE_CACHE", raising=False)
    first = from_jax(two, X, stage="llvm-dialect")
    again = from_jax(two, X, stage="llvm-dialect")
    assert len(asked) == 1
    np.testing.assert_array_equal(again(X)[0], first(X)[0])
    from_jax(two, X, stage="scf")
    assert len(asked) == 1
    from_jax(two, X, stage="scf", target="a100")
    assert len(asked) == 2
    from_jax(two, X, stage="scf", flags={"xla_gpu_enable_triton_gemm": False})
    assert len(asked) == 3
    from_jax(two, X[:2], stage="scf")
    assert len(asked) == 4
    from_jax(two, X, stage="scf", cache=False)
    assert len(asked) == 5
    monkeypatch.setattr(optimized_texts, "_versions", lambda toolchain: "another XLA")
    from_jax(two, X, stage="scf")
    assert len(asked) == 6


@pytest.mark.parametrize(
    ("narrow", "back"), [("float8_e4m3fn", "float32"), ("bfloat16", "float32"), ("float8_e4m3fn", "bfloat16")]
)
def test_round_trips_that_xla_drops_are_said(jax: Any, narrow: str, back: str) -> None:
    """The way back may end at another type than it began from."""

    def rounded(x: Any) -> Any:
        return x.astype(narrow).astype(back) + 1

    program = from_jax(rounded, X, stage="llvm-dialect")
    (warning,) = (remark for remark in program.graph.remarks if remark.pass_name == "xla")
    assert "of 1 round trip through" in warning.text
    assert "none is left" in warning.text
    assert "xla_allow_excess_precision" in warning.help
    kept = from_jax(rounded, X, stage="llvm-dialect", flags={"xla_allow_excess_precision": False})
    assert not [remark for remark in kept.graph.remarks if remark.pass_name == "xla"]
    np.testing.assert_array_equal(kept(X), np.asarray(rounded(jax.numpy.asarray(X))))
    assert not [remark for remark in from_jax(two, X, stage="scf").graph.remarks if remark.pass_name == "xla"]


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
