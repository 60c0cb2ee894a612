"""`xe.jit`: which calls share a program, and what is refused. Expected values are JAX's on the CPU."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import Unsupported, UsageError, XlaEmittersError

jax = pytest.importorskip("jax", reason="the extra [jax] is not installed")
F32 = np.float32


@pytest.fixture(autouse=True)
def on_cpu() -> Any:
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def affine(x: Any, w: Any, *, scale: Any = 2.0, bias: Any = None) -> Any:
    return x @ w * scale + (0.0 if bias is None else bias)


def test_a_shape_class_is_compiled_once() -> None:
    """Shapes, types and the tree make a class; values do not."""
    fast = xe.jit(lambda tree: tree["a"] * 2 + tree["b"])
    for size, number in ((3, 1), (4, 2), (3, 2)):
        tree = {"a": np.arange(size, dtype=F32), "b": np.ones(size, F32) * number}
        np.testing.assert_array_equal(fast(tree), tree["a"] * 2 + tree["b"])
        assert len(fast.programs) == number if size == 4 else len(fast.programs) <= 2
    assert len(fast.programs) == 2
    fast({"a": np.arange(3, dtype=np.int32), "b": np.ones(3, np.int32)})
    assert len(fast.programs) == 3
    fast({"a": 2, "b": 3})
    fast({"a": 5, "b": 3})
    assert len(fast.programs) == 4
    fast({"a": 2.5, "b": 3})
    assert len(fast.programs) == 5


def test_keywords_and_defaults_are_the_functions() -> None:
    fast = xe.jit(affine)
    x, w = np.arange(6, dtype=F32).reshape(2, 3), np.ones((3, 4), F32)
    bias = np.arange(4, dtype=F32)
    np.testing.assert_allclose(fast(x, w), affine(x, w))
    np.testing.assert_allclose(fast(w=w, x=x), affine(x, w))
    assert len(fast.programs) == 1
    np.testing.assert_allclose(fast(x, w, bias=bias), affine(x, w, bias=bias))
    np.testing.assert_allclose(fast(x, w, bias=bias, scale=F32(3)), affine(x, w, bias=bias, scale=3))
    with pytest.raises(TypeError, match="missing a required argument"):
        fast(x)


def test_an_argument_may_be_left_out_before_others() -> None:
    def three(x: Any, y: Any = 5, z: Any = 7) -> Any:
        return x * 100 + y * 10 + z

    fast = xe.jit(three)
    x = np.arange(2, dtype=np.int32)
    np.testing.assert_array_equal(fast(x, z=np.int32(1)), x * 100 + 51)
    np.testing.assert_array_equal(fast(x, np.int32(1)), x * 100 + 17)


def test_any_number_of_arguments() -> None:
    fast = xe.jit(lambda *xs, **named: sum(xs) - named["last"])
    xs = [np.arange(4, dtype=F32) + n for n in range(3)]
    np.testing.assert_array_equal(fast(*xs, last=xs[0]), sum(xs) - xs[0])
    np.testing.assert_array_equal(fast(xs[1], last=xs[0]), np.ones(4, F32))
    assert len(fast.programs) == 2


def test_static_arguments_are_part_of_the_class() -> None:
    def power(x: Any, n: int, how: str = "up") -> Any:
        return x**n if how == "up" else -(x**n)

    x = np.arange(4, dtype=F32)
    fast, of_jax = xe.jit(power, static_argnames=("n", "how")), xe.jit(jax.jit(power, static_argnames=("n", "how")))
    np.testing.assert_allclose(fast(x, 2), x**2)
    np.testing.assert_allclose(fast(x, n=3), x**3, rtol=1e-6)
    np.testing.assert_allclose(of_jax(x, 2, how="down"), -(x**2))
    np.testing.assert_allclose(of_jax(x, n=2), x**2)
    assert len(fast.programs) == len(of_jax.programs) == 2
    for each in (fast, of_jax):
        with pytest.raises(UsageError, match="cannot be hashed"):
            each(x, [2])
    with pytest.raises(UsageError, match="power has no argument 'm'"):
        xe.jit(power, static_argnames="m")


def test_dynamic_compiles_once_for_all_leading_sizes() -> None:
    fast = xe.jit(lambda x, w: jax.nn.softmax(x @ w), dynamic=True)
    w = np.cos(np.arange(12, dtype=F32)).reshape(3, 4)
    for b in (2, 5, 1, 33):
        x = np.sin(np.arange(3 * b, dtype=F32)).reshape(b, 3)
        np.testing.assert_allclose(fast(x, w), jax.nn.softmax(x @ w), rtol=1e-5)
    assert len(fast.programs) == 1
    wide = np.ones((3, 6), F32)  # a size that is known to the program
    assert fast(np.ones((2, 3), F32), wide).shape == (2, 6)
    assert len(fast.programs) == 2


def test_dynamic_sizes_by_name() -> None:
    """Symbols tie sizes of arguments; a call that breaks a tie is refused in JAX's words."""
    fast = xe.jit(lambda x, y: x[:, None, :] + y[None, :, :], shapes=("a, 4", "b, 4"))
    for a, b in ((2, 3), (5, 1)):
        x, y = np.ones((a, 4), F32), np.arange(4 * b, dtype=F32).reshape(b, 4)
        np.testing.assert_array_equal(fast(x, y), x[:, None] + y[None])
    assert len(fast.programs) == 1
    with pytest.raises(UsageError, match=r"shapes=\('a, 4', 'b, 4'\)"):
        fast(np.ones((2, 5), F32), np.ones((2, 5), F32))
    tied = xe.jit(lambda x, y: x + y, shapes=("n", "n"))
    np.testing.assert_array_equal(tied(np.ones(3, F32), np.ones(3, F32)), np.full(3, 2, F32))
    with pytest.raises(XlaEmittersError):
        tied(np.ones(3, F32), np.ones(4, F32))


def test_dynamic_needs_an_array() -> None:
    with pytest.raises(UsageError, match="no argument is an array with dimensions"):
        xe.jit(lambda x: x + 1, dynamic=True)(3)


@pytest.mark.parametrize(
    "around",
    [
        lambda f: jax.jit(f),
        lambda f: jax.grad(lambda x: f(x).sum()),
        lambda f: jax.vmap(f),
        lambda f: partial(jax.eval_shape, f),
    ],
)
def test_under_a_transformation_of_jax_it_says_no(around: Any) -> None:
    fast = xe.jit(jax.nn.softmax)
    with pytest.raises(Unsupported) as found:
        around(fast)(np.ones((2, 3), F32))
    assert "softmax was called inside of a transformation of JAX" in found.value.message
    assert "transform the function first: xla_emitters.jit(jax.grad(f))" in found.value.help


def test_a_transformed_function_is_compiled() -> None:
    gradient = xe.jit(jax.grad(lambda x: (x**2).sum()))
    np.testing.assert_array_equal(gradient(np.arange(3, dtype=F32)), np.arange(3, dtype=F32) * 2)


def test_as_a_decorator_it_keeps_name_and_doc() -> None:
    @xe.jit(static_argnames="n")
    def twice(x: Any, n: int) -> Any:
        """Doc."""
        return x * n

    assert (twice.__name__, twice.__doc__) == ("twice", "Doc.")
    np.testing.assert_array_equal(twice(np.ones(3, F32), 4), np.full(3, 4, F32))
    assert twice.program(np.ones(3, F32), 4) is twice.programs[0]
    with pytest.raises(UsageError, match="jit takes a function"):
        xe.jit(3)  # pyright: ignore
    with pytest.raises(UsageError, match="has no option 'no_such'"):
        xe.jit(lambda x: x, no_such=1)(np.ones(3, F32))


def test_old_programs_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xla_emitters.explore.from_jax.jax_jit.KEPT", 2)
    fast = xe.jit(lambda x: x + 1)
    for size in (1, 2, 1, 3):
        fast(np.ones(size, F32))
    assert [program.parameters[0].shape for program in fast.programs] == [(1,), (3,)]
