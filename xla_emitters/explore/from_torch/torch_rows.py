"""What an ATen op is in JAX, row by row: torchax's table, some rows of our own, and PyTorch's integers of sizes.

    rows.of(torch.ops.aten.linear.default)      torchax's function of JAX's arrays
    rows.of(torch.ops.aten.lstm.input)          ours: a loop over the steps, of which there may be any number

torchax is a backend of PyTorch that computes with JAX; what is used is its table alone (`torchax.ops.jaten`). The package itself is not
imported: that renames a device of PyTorch, turns off a fast path of its attention and changes JAX's options, for everybody in the process,
and with PyTorch 2.13 it fails, because a list of ops in it has names that PyTorch dropped. The modules with the table are loaded under a
package of the same name that is empty, and forgotten by `sys.modules` again: a later `import torchax` is not affected.
Rows of our own replace torchax's where those need known sizes, or where one op says more than its decomposition.
Source: torchax 0.0.13, torchax/ops (ops_registry, jaten, mappings).
"""

# The rows are functions of JAX's arrays, which have no types here.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from types import ModuleType
from typing import Any

from xla_emitters.errors import ToolError
from xla_emitters.support.extras import install_command

Row = Callable[..., Any]
_END = 2**63 - 1
"""The end of a slice that PyTorch writes for none."""
_FEW_ROWS = 25
"""Most rows between which PyTorch finds distances without a product."""
_ROUNDED_ONCE = {
    *("_softmax", "softmax", "_log_softmax", "logaddexp", "logaddexp2", "silu", "glu"),
    *("native_layer_norm", "native_group_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training"),
    *("_adaptive_avg_pool2d", "_adaptive_avg_pool3d"),
    *("dist", "hypot", "_pdist_forward", "addbmm"),
}
"""torchax's rows of several ops, each of which would round to 16 bits, or overflow in them."""


@dataclass(frozen=True)
class Rows:
    """The rows for the ops of one PyTorch.

    own   op, or integer function of Python -> its row; before torchax's
    table, mappings  torchax's: `ops_registry.all_aten_ops`, and the module of types
    """

    torch: ModuleType
    jax: ModuleType
    own: Mapping[Any, Row]
    table: Mapping[Any, Any]
    mappings: ModuleType

    def of(self, target: Any) -> Row | None:
        """The function of JAX's arrays for an op; None where there is none, or where it would need a state: random numbers."""
        packet = getattr(target, "overloadpacket", target)
        if self.is_own(target):
            return self.own.get(target) or self.own[packet]
        found = self.table.get(target) or self.table.get(packet)
        if found is None or not found.is_jax_function or found.needs_env or self.is_decomposed(target):
            return None
        row = found.func if getattr(packet, "__name__", "") not in _ROUNDED_ONCE else rounded_once(self.jax, found.func)
        return partial(_with_defaults, target, row) if hasattr(target, "_schema") else row

    def is_own(self, target: Any) -> bool:
        return target in self.own or getattr(target, "overloadpacket", target) in self.own

    def is_decomposed(self, target: Any) -> bool:
        """Whether torchax's row is not taken but PyTorch's decomposition, or none: the row has other arguments than the op, rounds to
        float32, gives NaN for all matrices but positive definite ones, goes over indices in Python, counts pieces of known size, or takes
        a padding "same" for numbers.
        """
        packet, aten = getattr(target, "overloadpacket", target), self.torch.ops.aten
        return target in (aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding) or packet in (
            *(aten.native_layer_norm_backward, aten.logit, aten.mvlgamma, aten.linalg_ldl_factor_ex),
            *(aten.max_unpool2d, aten.max_unpool3d, aten.split),
        )

    def is_random(self, target: Any) -> bool:
        """Whether torchax computes an op with a state of its own, of which it has one: that of random numbers."""
        found = self.table.get(target) or self.table.get(getattr(target, "overloadpacket", target))
        return found is not None and found.needs_env

    def dtype(self, element: Any) -> Any:
        """NumPy's type for PyTorch's."""
        return self.mappings.t2j_dtype(element)

    def array(self, tensor: Any) -> Any:
        """JAX's array of a tensor's elements."""
        return self.mappings.t2j(tensor.detach().resolve_conj().resolve_neg())

    def with_scalars(self, node: Any, arguments: Any, keywords: Any, element: Any) -> tuple[Any, Any]:
        """The arguments of a row in the type that they are computed with, that of the result: numbers that were made of sizes, and an array
        of bool or uint8 that torchax's row takes alone, which converts other integers only.

        PyTorch computes such a number in float64 and then with the tensor in the tensor's type. As an array of float64 JAX would have it
        make everything float64.
        """
        if not (element.is_floating_point or element.is_complex):
            return arguments, keywords
        values = [value.meta.get("val") for value in node.all_input_nodes]
        has_made = any(isinstance(value, self.torch.SymFloat) for value in values)
        is_alone = len(values) == 1 and not self.is_own(node.target)
        if not (has_made or is_alone):
            return arguments, keywords
        wanted = self.dtype(element)

        def typed(value: Any) -> Any:
            if not isinstance(value, self.jax.Array):
                return value
            is_scalar = has_made and value.ndim == 0 and value.dtype == "float64"
            return value.astype(wanted) if is_scalar or (is_alone and value.dtype in ("bool", "uint8")) else value

        return self.torch.fx.node.map_aggregate((arguments, keywords), typed)


def rounded_once(jax: ModuleType, function: Row) -> Row:
    """The row in float32 where its arrays are of 16 bits, as PyTorch computes it: its result is converted, so it is rounded once."""

    def widened(value: Any) -> Any:
        return value.astype("float32") if getattr(value, "dtype", None) in ("float16", "bfloat16") else value

    @wraps(function)
    def row(*arguments: Any, **keywords: Any) -> Any:
        return function(*jax.tree.map(widened, arguments), **jax.tree.map(widened, keywords))

    return row


def _with_defaults(op: Any, function: Row, *arguments: Any, **keywords: Any) -> Any:
    """Calls torchax's function with the arguments that PyTorch leaves out as they have their default, where it needs them."""
    named = [each for each in signature(function).parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    given = list(arguments)
    for parameter, said in list(zip(named, op._schema.arguments, strict=False))[len(given) :]:
        if parameter.default is not parameter.empty or parameter.name in keywords or said.kwarg_only:
            break
        given.append(keywords.pop(said.name) if said.name in keywords else said.default_value)
    return function(*given, **keywords)


def rows_of(torch: ModuleType, jax: ModuleType) -> Rows:
    """raises ToolError where torchax is not installed"""
    with _table_alone():
        import_module("torchax.ops.jaten")
        registry, mappings = import_module("torchax.ops.ops_registry"), import_module("torchax.ops.mappings")
    own = {
        **_of_sizes(torch, jax),
        **_of_assertions(torch),
        **_of_control(torch, jax),
        **_of_numbers(torch, jax, mappings.t2j_dtype, registry.all_aten_ops),
        **_of_lines(torch, jax, mappings.t2j_dtype, registry.all_aten_ops),
        **_of_matrices(torch, jax),
        **_of_networks(torch, jax),
        **_of_convolutions(torch, jax, registry.all_aten_ops),
    }
    return Rows(torch, jax, own, registry.all_aten_ops, mappings)


@contextmanager
def _table_alone() -> Generator[None]:
    """Inside it `torchax` is a package of the files that torchax has, whose own first module has not run; afterwards all is as before."""
    found = find_spec("torchax")
    if found is None or not found.submodule_search_locations:
        raise ToolError("torchax is not installed", stage="torch", help=install_command(extras="torch"))
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "torchax"}
    package = ModuleType("torchax")
    package.__path__ = list(found.submodule_search_locations)
    # Its policy for mixed precision is of names that PyTorch dropped, and the table does not need it.
    sys.modules |= {"torchax": package, "torchax.amp": ModuleType("torchax.amp")}
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchax"]:
            del sys.modules[name]
        sys.modules.update(before)


# ------------------------------------------------------------------------------------------------------------------ sizes


def _of_sizes(torch: ModuleType, jax: ModuleType) -> dict[Any, Row]:
    """Integers that are made of sizes: JAX's sizes, which know Python's arithmetic on integers."""
    jnp, aten = jax.numpy, torch.ops.aten

    def real(value: Any) -> Any:
        return float(value) if isinstance(value, int | float) else jnp.asarray(value).astype("float64")

    def divided(x: Any, y: Any) -> Any:
        return real(x) / real(y)

    def compared_by(function: Callable[[Any, Any], Any]) -> Row:
        """A comparison of sizes; an array where JAX cannot decide it for all of them."""

        def compared(x: Any, y: Any) -> Any:
            try:
                return function(x, y)
            except jax.errors.InconclusiveDimensionOperation:
                return function(jnp.asarray(x), jnp.asarray(y))

        return compared

    same = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg, operator.getitem)
    compared = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
    return {
        **{function: function for function in same},
        **{function: compared_by(function) for function in compared},
        operator.pow: lambda x, y: math.prod([x] * y) if isinstance(y, int) and y >= 0 else real(x) ** real(y),
        operator.truediv: divided,
        torch.sym_float: real,
        torch.sym_int: lambda x: x if not hasattr(x, "astype") else x.astype("int64"),
        torch.sym_max: jax.core.max_dim if hasattr(jax.core, "max_dim") else max,
        torch.sym_min: jax.core.min_dim if hasattr(jax.core, "min_dim") else min,
        torch.sym_not: lambda x: not x if isinstance(x, bool) else jnp.logical_not(x),
        aten.sym_size: lambda x, axis: x.shape[axis],
        aten.sym_numel: lambda x: math.prod(x.shape),
    }


def _of_assertions(torch: ModuleType) -> dict[Any, Row]:
    """What was true when the module was exported: types and layouts of tensors are as they were, so their assertions are left out."""
    aten = torch.ops.aten

    def asserted(condition: Any, message: str = "") -> None:
        if condition is False:
            raise ValueError(f"this is never true: {message}")

    return {
        aten._assert_tensor_metadata: lambda *_, **__: None,
        aten._assert_scalar: asserted,
        aten._assert_async: lambda *_: None,  # of data, which a program does not look at
        aten.sym_constrain_range_for_size: lambda *_, **__: None,
        aten.sym_constrain_range: lambda *_, **__: None,
    }


# ---------------------------------------------------------------------------------------------------------------- control


def _of_control(torch: ModuleType, jax: ModuleType) -> dict[Any, Row]:
    """Conditions and loops; a body is a graph with `run`."""
    lax, higher = jax.lax, torch.ops.higher_order

    def scan(body: Any, first: Sequence[Any], given: Sequence[Any], more: Sequence[Any] = ()) -> list[Any]:
        count = len(first)

        def step(carried: Any, each: Any) -> Any:
            found = body.run([*carried, *each, *more])
            return tuple(found[:count]), tuple(found[count:])

        carried, made = lax.scan(step, tuple(first), tuple(given))
        return [*carried, *made]

    def loop(condition: Any, body: Any, first: Sequence[Any], more: Sequence[Any] = ()) -> Any:
        def goes_on(carried: Any) -> Any:
            found = condition.run([*carried, *more])
            return found[0] if isinstance(found, list | tuple) else found

        return lax.while_loop(goes_on, lambda carried: tuple(body.run([*carried, *more])), tuple(first))

    return {
        higher.with_effects: lambda token, op, *_, **__: (token, None),  # of assertions: see `_of_assertions`
        higher.cond: lambda which, then, otherwise, given=(): lax.cond(
            which, lambda *each: tuple(then.run(each)), lambda *each: tuple(otherwise.run(each)), *given
        ),
        higher.while_loop: loop,
        higher.scan: scan,
        higher.map_impl: lambda body, given, more: lax.map(lambda each: tuple(body.run([*each, *more])), tuple(given)),
    }


# ---------------------------------------------------------------------------------------------------------------- numbers


def _of_numbers(
    torch: ModuleType, jax: ModuleType, types: Callable[[Any], Any], table: Mapping[Any, Any]
) -> dict[Any, Row]:
    """Arithmetic in which torchax rounds where PyTorch does not, or takes numbers for truth values."""
    jnp, lax, aten = jax.numpy, jax.lax, torch.ops.aten

    def to_sum(x: Any, element: Any) -> Any:
        """The summands in the type of the sum."""
        return (
            x.astype("int64" if not jnp.issubdtype(x.dtype, jnp.inexact) else x.dtype)
            if element is None
            else x.astype(types(element))
        )

    def total(function: Row) -> Row:
        def reduced(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
            axes = tuple(dim) if isinstance(dim, list | tuple) else dim
            is_all = axes in (None, ()) or x.ndim == 0
            return function(to_sum(x, dtype), axis=None if is_all else axes, keepdims=keepdim)

        return reduced

    def running(function: Row) -> Row:
        function = rounded_once(jax, function)
        return lambda x, dim, *, dtype=None: function(to_sum(x, dtype), axis=dim if x.ndim else None).reshape(x.shape)

    def softmax(x: Any, dim: int, dtype: Any = None) -> Any:
        return table[aten.softmax.int].func(to_sum(x, dtype), dim)

    def power(x: Any, y: Any) -> Any:
        """Products where the exponent is a small number; of integers there is no way by floats."""
        if isinstance(y, float) and y.is_integer() and abs(y) <= 3 and not jnp.issubdtype(x.dtype, jnp.integer):
            y = int(y)
        if (
            isinstance(y, int)
            and hasattr(x, "dtype")
            and (0 <= y <= 3 or jnp.issubdtype(x.dtype, jnp.integer))
            and y >= 0
        ):
            return lax.integer_pow(x, y)
        return jnp.power(x, y)

    def remainder(x: Any, y: Any) -> Any:
        """Of the quotient rounded towards zero; exact for floats."""
        wanted = jnp.result_type(x, y)
        return lax.rem(*jnp.broadcast_arrays(jnp.asarray(x, wanted), jnp.asarray(y, wanted)))

    def norm(x: Any, order: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        """In the type that is asked for: torchax converts the result."""
        function = rounded_once(jax, table[aten.linalg_vector_norm].func)
        return function(x if dtype is None else x.astype(types(dtype)), order, dim, keepdim)

    def distances(x: Any, y: Any, order: Any = 2, mode: int | None = None) -> Any:
        """Of each row of `x` from each of `y`; those of many rows by a product, as PyTorch has them."""
        if order == 2 and (mode == 1 or (mode != 2 and (x.shape[-2] > _FEW_ROWS or y.shape[-2] > _FEW_ROWS))):
            squares = jnp.sum(x * x, -1)[..., :, None] + jnp.sum(y * y, -1)[..., None, :]
            return jnp.sqrt(jnp.maximum(squares - 2 * (x @ jnp.matrix_transpose(y)), 0))
        return norm(x[..., :, None, :] - y[..., None, :, :], order, -1)

    def added(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        """A product and `x`, which is not looked at where `beta` is 0."""
        product = a @ b if isinstance(alpha, int) and alpha == 1 else (a @ b) * alpha
        return product if isinstance(beta, int | float) and beta == 0 else x * beta + product

    def angle(x: Any) -> Any:
        return jnp.angle(x) if jnp.iscomplexobj(x) else jnp.where(x == x, jnp.where(x < 0, jnp.pi, 0.0), jnp.nan)

    def quotient(x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
        """Integers are divided as such: floats do not hold all of them."""
        if rounding_mode == "floor":
            return jnp.floor_divide(x, y)
        wanted = jnp.result_type(x, y)
        if rounding_mode == "trunc" and jnp.issubdtype(wanted, jnp.integer):
            return lax.div(*jnp.broadcast_arrays(jnp.asarray(x, wanted), jnp.asarray(y, wanted)))
        return jnp.trunc(x / y) if rounding_mode == "trunc" else x / y

    def real(function: Row) -> Row:
        """A function of reals, of float32 at least; torchax has some in float32 always, or multiplies e^(x^2), which overflows."""
        return lambda x: function(x.astype(jnp.promote_types(x.dtype, "float32")))

    def digamma(x: Any) -> Any:
        return jnp.where(x == 0, jnp.copysign(jnp.inf, -x), lax.digamma(x))

    def sign(x: Any) -> Any:
        """Of what is no number 0, if it is not complex."""
        return jnp.sign(x) if jnp.iscomplexobj(x) else jnp.where(x == x, jnp.sign(x), 0)

    return {
        aten.sign.default: sign,
        aten.sgn.default: sign,
        aten.special_erfcx.default: real(jax.scipy.special.erfcx),
        aten.lgamma.default: real(lax.lgamma),
        aten.polygamma.default: lambda n, x: real(lambda x: lax.polygamma(jnp.full_like(x, n), x))(x),
        aten.digamma.default: real(digamma),
        aten.complex.default: lambda x, y: lax.complex(*jnp.broadcast_arrays(x, y)),
        aten.linalg_vector_norm.default: norm,
        **dict.fromkeys((aten.cdist.default, aten._cdist_forward.default), distances),
        **dict.fromkeys((aten.addmm.default, aten.addmv.default), added),
        aten.angle.default: angle,
        aten.div.Tensor_mode: quotient,
        aten.div.Scalar_mode: quotient,
        # torchax has truth values for these.
        aten.__and__: operator.and_,
        aten.__or__: operator.or_,
        aten.__xor__: operator.xor,
        aten.neg.default: operator.neg,
        aten.sum.default: total(jnp.sum),
        aten.sum.dim_IntList: total(jnp.sum),
        aten.mean.default: total(jnp.mean),
        aten.mean.dim: total(jnp.mean),
        aten.softmax.int: rounded_once(jax, softmax),
        aten.max.other: jnp.maximum,
        aten.min.other: jnp.minimum,
        aten.prod.default: lambda x, *, dtype=None: jnp.prod(to_sum(x, dtype)),
        aten.prod.dim_int: total(jnp.prod),
        aten.cumsum.default: running(jnp.cumsum),
        aten.cumprod.default: running(jnp.cumprod),
        aten.fmod.Tensor: remainder,
        aten.fmod.Scalar: remainder,
        aten.pow.Tensor_Scalar: power,
        aten.pow.Tensor_Tensor: jnp.power,
    }


# ------------------------------------------------------------------------------------------------------------------ lines


def _of_lines(
    torch: ModuleType, jax: ModuleType, types: Callable[[Any], Any], table: Mapping[Any, Any]
) -> dict[Any, Row]:
    """Arrays made of sizes, and what is computed along one axis."""
    jnp, lax, aten = jax.numpy, jax.lax, torch.ops.aten

    def steps(start: Any, end: Any, step: Any = 1, *, dtype: Any = None, **_: Any) -> Any:
        """From `start` up to `end`: any of them may be a size. The type is what PyTorch says of the result."""
        if all(isinstance(each, int | float) for each in (start, end, step)):
            return jnp.arange(start, end, step)
        return start + step * jnp.arange(-((start - end) // step))

    def largest(x: Any, k: int, dim: int = -1, is_largest: bool = True, is_sorted: bool = True) -> Any:
        """One sort of each line, of which the first `k` are taken: what is no number is after all numbers, whatever its sign."""
        x, key = jnp.moveaxis(x, dim, -1), jnp.moveaxis(x, dim, -1)
        if jnp.issubdtype(x.dtype, jnp.floating):
            key = jnp.where(x == x, x if is_largest else -x, jnp.asarray(jnp.nan if is_largest else -jnp.nan, x.dtype))
        elif not is_largest:
            key = ~x
        values, places = lax.top_k(key, k)
        values = values if is_largest else jnp.take_along_axis(x, places, axis=-1)
        return jnp.moveaxis(values, -1, dim), jnp.moveaxis(places, -1, dim)

    def so_far(best: Row) -> Row:
        """The best of the elements so far, and the last place that has it."""

        def line(x: Any, dim: int) -> Any:
            if not x.ndim:
                return x, jnp.zeros((), "int64")
            axis = dim % x.ndim
            values = best(x, axis=axis)
            places = lax.broadcasted_iota("int64", x.shape, axis)
            return values, lax.cummax(jnp.where((x == values) | (x != x), places, 0), axis=axis)

        return line

    def padded(x: Any, widths: Sequence[int], mode: str = "constant", value: Any = None) -> Any:
        """Elements before and after each of the last axes; negative widths take some away."""
        if mode == "constant":
            pairs = [(0, 0, 0)] * (x.ndim - len(widths) // 2)
            pairs += [(widths[i], widths[i + 1], 0) for i in range(len(widths) - 2, -1, -2)]
            return lax.pad(x, jnp.asarray(value or 0, x.dtype), pairs)
        for number in range(len(widths) // 2):
            axis, (before, after) = x.ndim - 1 - number, widths[2 * number : 2 * number + 2]
            size = x.shape[axis]
            at = jnp.arange(size + before + after) - before
            if mode == "reflect":
                at = (size - 1) - jnp.abs((size - 1) - jnp.abs(at))
            at = at % size if mode == "circular" else jnp.clip(at, 0, size - 1)
            x = jnp.take(x, at, axis=axis)
        return x

    def selected(x: Any, dim: int, index: Any) -> Any:
        """One element of an axis, counted from its end where it is negative."""
        axis = dim % x.ndim
        if isinstance(index, int) and isinstance(x.shape[axis], int):
            return lax.index_in_dim(x, index, axis, keepdims=False)
        is_last = isinstance(index, int) and index < 0
        return lax.dynamic_index_in_dim(x, jnp.asarray(x.shape[axis] + index if is_last else index), axis, False)

    def with_slice(x: Any, new: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
        axis = dim % x.ndim
        end = None if end == _END else end
        return x.at[(slice(None),) * axis + (slice(start, end, step),)].set(new)

    def middle(*, ignores_nan: bool) -> Row:
        """The lower of the two middle elements of those that count, and its place; a NaN that counts is the result."""

        def median(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
            line, axis = (x.reshape(-1), 0) if dim is None or not x.ndim else (x, dim % x.ndim)
            order = jnp.argsort(line, axis=axis)
            numbers = jnp.sum(line == line, axis=axis, keepdims=True)
            at = jnp.maximum((numbers - 1) // 2, 0)
            at = at if ignores_nan else jnp.where(numbers < line.shape[axis], numbers, at)
            place = jnp.take_along_axis(order, at, axis)
            value = jnp.take_along_axis(line, place, axis)
            if not (keepdim and dim is not None and x.ndim):
                place, value = jnp.squeeze(place, axis), jnp.squeeze(value, axis)
            return value if dim is None else (value, place)

        return median

    def places(
        ordered: Any,
        values: Any,
        *,
        out_int32: bool = False,
        right: bool = False,
        side: str | None = None,
        sorter: Any = None,
    ) -> Any:
        """Where the values would be inserted: in one line, or in each of the last axis."""
        ordered = ordered if sorter is None else jnp.take_along_axis(ordered, sorter, -1)
        size, values = ordered.shape[-1], jnp.asarray(values)
        side = "right" if right else side or "left"

        def of_line(line: Any, values: Any) -> Any:
            if isinstance(size, int):
                return jnp.searchsorted(line, values, side)
            column = line.reshape(-1, *[1] * values.ndim)  # JAX's own wants a known size
            is_before = column <= values if side == "right" else column < values
            return jnp.sum(is_before | (values != values), axis=0)

        if ordered.ndim == 1:
            return of_line(ordered, values)
        lines, of_lines = ordered.reshape(-1, size), values.reshape(-1, values.shape[-1])
        return jax.vmap(of_line)(lines, of_lines).reshape(values.shape)

    def buckets(values: Any, limits: Any, *, out_int32: bool = False, right: bool = False) -> Any:
        return places(limits, values, right=right)

    def put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
        """Elements by their numbers in the whole array; of equal numbers all are added."""
        flat, source = x.reshape(-1).at[index.reshape(-1)], source.reshape(-1)
        return (flat.add(source) if accumulate else flat.set(source)).reshape(x.shape)

    def filled(x: Any, mask: Any, source: Any) -> Any:
        """The elements of `source`, in order, where the mask is true; torchax asks how many there are."""
        x, mask = jnp.broadcast_arrays(x, mask)
        return with_indices(x, [mask], source.reshape(-1))

    def with_indices(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
        """`x[..., mask] = values` of one mask, of any axes, as a selection; torchax wants known sizes and the first axes.

        The places of the mask are one axis of the values, or are not in their shape: all get the same ones.
        """
        *before, mask = indices
        if any(index is not None for index in before) or mask.dtype != "bool":
            return table[aten.index_put].func(x, indices, values, accumulate)
        first, after = len(before), x.ndim - len(before) - mask.ndim
        if values.ndim > after:
            axis = values.ndim - after - 1
            at = jnp.cumsum(mask.reshape(-1).astype("int64")) - 1
            taken = jnp.take(values, at, axis=axis, mode="clip")
            values = taken.reshape((*taken.shape[:axis], *mask.shape, *taken.shape[axis + 1 :]))
        mask = mask.reshape((*[1] * first, *mask.shape, *[1] * after))
        return jnp.where(mask, x + values if accumulate else values, x)

    def of_bits(x: Any, element: Any) -> Any:
        """The same bits as elements of another type: of another size, in the last axis."""
        wanted = jnp.dtype(types(element))
        ratio = wanted.itemsize // x.dtype.itemsize
        if ratio > 1:
            x = x.reshape((*x.shape[:-1], x.shape[-1] // ratio, ratio))
        found = lax.bitcast_convert_type(x, wanted)
        return found.reshape((*found.shape[:-2], -1)) if found.ndim > x.ndim else found

    def repeated(x: Any, count: Any, dim: int | None = None, **_: Any) -> Any:
        """Each element `count` times, next to itself."""
        x, axis = (x.reshape(-1), 0) if dim is None else (x, dim % x.ndim)
        spread = jnp.broadcast_to(jnp.expand_dims(x, axis + 1), (*x.shape[: axis + 1], count, *x.shape[axis + 1 :]))
        return spread.reshape((*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :]))

    def repeated_by(x: Any, counts: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
        """Each element as often as data say; how many there are is known where the caller says so."""
        return jnp.repeat(x, counts, axis=dim, total_repeat_length=output_size)

    def of_each(function: Row) -> Row:
        return lambda tensors: [function(each) for each in tensors]

    return {
        aten.pad.default: padded,
        aten.repeat_interleave.self_Tensor: repeated_by,
        aten.repeat_interleave.Tensor: lambda counts, **size: repeated_by(jnp.arange(counts.shape[0]), counts, **size),
        aten.atleast_1d.Sequence: of_each(jnp.atleast_1d),
        aten.atleast_2d.Sequence: of_each(jnp.atleast_2d),
        aten.atleast_3d.Sequence: of_each(jnp.atleast_3d),
        aten.fft_fftfreq.default: lambda n, d=1.0, **_: jnp.fft.fftfreq(n, d),
        aten.fft_rfftfreq.default: lambda n, d=1.0, **_: jnp.fft.rfftfreq(n, d),
        aten.select.int: selected,
        aten.slice_scatter.default: with_slice,
        aten.put.default: put,
        aten.masked_scatter.default: filled,
        aten.index_put.default: with_indices,
        **dict.fromkeys((aten.searchsorted.Tensor, aten.searchsorted.Scalar), places),
        **dict.fromkeys((aten.bucketize.Tensor, aten.bucketize.Scalar), buckets),
        **dict.fromkeys((aten.median.default, aten.median.dim), middle(ignores_nan=False)),
        **dict.fromkeys((aten.nanmedian.default, aten.nanmedian.dim), middle(ignores_nan=True)),
        aten.nonzero_static.default: lambda x, *, size, fill_value=-1: jnp.argwhere(
            x, size=size, fill_value=fill_value
        ),
        aten.view.dtype: of_bits,
        aten.repeat_interleave.self_int: repeated,
        aten.arange.start_step: steps,
        aten.arange.start: steps,
        aten.arange.default: lambda end, **_: steps(0, end),
        aten.topk.default: largest,
        aten.cummax.default: so_far(lax.cummax),
        aten.cummin.default: so_far(lax.cummin),
        aten.logcumsumexp.default: rounded_once(jax, lambda x, dim: lax.cumlogsumexp(x, axis=dim % max(x.ndim, 1))),
        aten.broadcast_tensors.default: lambda tensors: list(jnp.broadcast_arrays(*tensors)),
    }


# --------------------------------------------------------------------------------------------------------------- matrices


def _of_matrices(torch: ModuleType, jax: ModuleType) -> dict[Any, Row]:
    """Linear algebra of batches, and a Fourier transform, where torchax has some of the cases."""
    jnp, linalg, scipy, aten = jax.numpy, jax.numpy.linalg, jax.scipy.linalg, torch.ops.aten
    turned = jnp.matrix_transpose

    def solved(a: Any, b: Any, *, left: bool = True, **_: Any) -> Any:
        """A `b` that has the shape of the rows is a vector of each matrix, any other has columns."""
        is_vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
        b = b[..., None] if is_vector else b
        found = linalg.solve(a, b) if left else turned(linalg.solve(turned(a), turned(b)))
        return [found[..., 0] if is_vector else found, None, None, jnp.zeros(a.shape[:-2], "int32")]

    def solved_by_lu(lu: Any, pivots: Any, b: Any, *, left: bool = True, adjoint: bool = False) -> Any:
        """X A = B is A' X' = B'; with A's adjoint it is A conj(X') = conj(B')."""
        factors = lu, pivots - 1
        if left:
            return scipy.lu_solve(factors, b, 2 if adjoint else 0)
        if adjoint:
            return turned(scipy.lu_solve(factors, turned(b).conj(), 0).conj())
        return turned(scipy.lu_solve(factors, turned(b), 1))

    def unpacked(lu: Any, pivots: Any, with_data: bool = True, with_pivots: bool = True) -> Any:
        """P, L and U of A = P L U; row i of L U is row `order[i]` of A."""
        order = jax.lax.linalg.lu_pivots_to_permutation(pivots - 1, lu.shape[-2])
        count = getattr(jax.core, "min_dim", min)(*lu.shape[-2:])
        lower = jnp.tril(lu[..., :count], -1) + jnp.eye(lu.shape[-2], count, dtype=lu.dtype)
        found = turned(jnp.eye(lu.shape[-2], dtype=lu.dtype)[order]), lower, jnp.triu(lu[..., :count, :])
        return [
            each if is_wanted else jnp.zeros(0, lu.dtype)
            for each, is_wanted in zip(found, (with_pivots, with_data, with_data), strict=True)
        ]

    def inverse(factor: Any, upper: bool = False) -> Any:
        return scipy.cho_solve((factor, not upper), jnp.broadcast_to(jnp.eye(factor.shape[-1]), factor.shape))

    def singular(a: Any, full_matrices: bool = False, compute_uv: bool = True, **_: Any) -> Any:
        if not compute_uv:
            return [None, linalg.svd(a, compute_uv=False), None]
        return list(linalg.svd(a, full_matrices=full_matrices))

    def orthogonal(a: Any, mode: str = "reduced") -> Any:
        return [jnp.zeros(0, a.dtype), linalg.qr(a, mode="r")] if mode == "r" else list(linalg.qr(a, mode=mode))

    def of_spectrum(x: Any, axes: Sequence[int], normalization: int, last: Any) -> Any:
        sizes = [*(x.shape[axis] for axis in axes[:-1]), last]
        return jnp.fft.irfftn(x, sizes, axes, ("forward", "ortho", "backward")[normalization])

    return {
        aten._linalg_solve_ex.default: solved,
        aten.linalg_lu_solve.default: solved_by_lu,
        aten.cholesky_solve.default: lambda b, factor, upper=False: scipy.cho_solve((factor, not upper), b),
        aten.cholesky_inverse.default: inverse,
        aten.lu_unpack.default: unpacked,
        aten._linalg_det.default: lambda a: [linalg.det(a), None, None],
        aten._linalg_svd.default: singular,
        aten.linalg_qr.default: orthogonal,
        aten._fft_c2r.default: of_spectrum,
    }


# --------------------------------------------------------------------------------------------------------------- networks


def _of_networks(torch: ModuleType, jax: ModuleType) -> dict[Any, Row]:
    jnp, lax, nn, aten = jax.numpy, jax.lax, jax.nn, torch.ops.aten

    def attention(
        q: Any,
        k: Any,
        v: Any,
        mask: Any = None,
        dropout: float = 0.0,
        causal: bool = False,
        scale: Any = None,
        enable_gqa: bool = False,
    ) -> Any:
        """The decomposition computes the scores twice as large arrays as needed: it scales both factors, and masks rows afterwards."""
        if dropout:
            raise NotImplementedError("dropout needs random numbers: module.eval() leaves it out")
        if enable_gqa:
            k, v = (jnp.repeat(each, q.shape[-3] // each.shape[-3], axis=-3) for each in (k, v))
        wide = jnp.promote_types(q.dtype, "float32")
        scores = jnp.einsum("...sd,...td->...st", q, k, preferred_element_type=wide)
        scores = scores * jnp.asarray(1 / math.sqrt(q.shape[-1]) if scale is None else scale, wide)
        if causal:
            scores = jnp.where(jnp.arange(q.shape[-2])[:, None] >= jnp.arange(k.shape[-2])[None, :], scores, -jnp.inf)
        if mask is not None:
            scores = jnp.where(mask, scores, -jnp.inf) if mask.dtype == "bool" else scores + mask.astype(wide)
        weights = nn.softmax(scores, axis=-1)
        if mask is not None:  # a row of which nothing is allowed is zero, not NaN
            allowed = mask if mask.dtype == "bool" else scores > -jnp.inf
            weights = jnp.where(jnp.any(allowed, axis=-1, keepdims=True), weights, 0)
        return jnp.einsum("...st,...td->...sd", weights.astype(q.dtype), v)

    def stepped(cell: Callable[..., Any], gates: int) -> Row:
        """A recurrent network: `cell(x of one step, state, weights) -> state`, in layers and directions, each a loop over the steps."""

        def network(
            x: Any,
            first: Any,
            weights: Sequence[Any],
            biases: bool,
            layers: int,
            dropout: float,
            train: bool,
            both: bool,
            batch_first: bool,
        ) -> Any:
            if dropout and train and layers > 1:
                raise NotImplementedError("dropout needs random numbers: module.eval() leaves it out")
            first = first if isinstance(first, list | tuple) else [first]
            x = jnp.swapaxes(x, 0, 1) if batch_first else x
            each, last = (4 if biases else 2), list[Any]()
            has_projection = len(weights) != layers * (2 if both else 1) * each
            each += has_projection
            for layer in range(layers):
                outputs = list[Any]()
                for direction in range(2 if both else 1):
                    number = layer * (2 if both else 1) + direction
                    w_x, w_h, *more = weights[number * each : (number + 1) * each]
                    b_x, b_h = more[:2] if biases else (None, None)
                    projection = more[-1] if has_projection else None
                    of_x = x @ w_x.T + (0 if b_x is None else b_x)

                    def step(state: Any, given: Any, w_h: Any = w_h, b_h: Any = b_h, p: Any = projection) -> Any:
                        first, *rest = cell(given, state, state[0] @ w_h.T + (0 if b_h is None else b_h))
                        first = first if p is None else first @ p.T
                        return (first, *rest), first

                    state, found = lax.scan(step, tuple(part[number] for part in first), of_x, reverse=bool(direction))
                    outputs.append(found)
                    last.append(state)
                x = jnp.concatenate(outputs, axis=-1) if both else outputs[0]
            return (
                jnp.swapaxes(x, 0, 1) if batch_first else x,
                *(jnp.stack(parts) for parts in zip(*last, strict=True)),
            )

        return network

    def lstm(of_x: Any, state: Any, of_h: Any) -> Any:
        i, f, g, o = jnp.split(of_x + of_h, 4, axis=-1)
        cell = nn.sigmoid(f) * state[1] + nn.sigmoid(i) * jnp.tanh(g)
        return nn.sigmoid(o) * jnp.tanh(cell), cell

    def gru(of_x: Any, state: Any, of_h: Any) -> Any:
        (r_x, z_x, n_x), (r_h, z_h, n_h) = (jnp.split(each, 3, axis=-1) for each in (of_x, of_h))
        z, new = nn.sigmoid(z_x + z_h), jnp.tanh(n_x + nn.sigmoid(r_x + r_h) * n_h)
        return (new + z * (state[0] - new),)

    def bag(
        weight: Any,
        indices: Any,
        offsets: Any,
        scaled: bool = False,
        mode: int = 0,
        sparse: bool = False,
        scales: Any = None,
        include_last_offset: bool = False,
        padding_idx: int = -1,
    ) -> Any:
        """Sums, means or maxima of a table's rows, of bags that begin at `offsets`; a bag of nothing gives zeros."""
        starts = offsets[:-1] if include_last_offset else offsets
        of = jnp.cumsum(jnp.zeros(indices.shape[0], "int64").at[starts].add(1)) - 1
        is_taken = indices != padding_idx
        rows = weight[indices] if scales is None else weight[indices] * scales[:, None]
        counts = jnp.zeros(starts.shape[0], "int64").at[of].add(is_taken.astype("int64"))
        shape = (starts.shape[0], weight.shape[1])
        if mode == 2:
            found = jnp.full(shape, -jnp.inf, weight.dtype).at[of].max(jnp.where(is_taken[:, None], rows, -jnp.inf))
            found = jnp.where(counts[:, None] > 0, found, 0)
        else:
            found = jnp.zeros(shape, weight.dtype).at[of].add(jnp.where(is_taken[:, None], rows, 0))
            found = found / jnp.maximum(counts, 1)[:, None].astype(weight.dtype) if mode == 1 else found
        return found, of, counts, None  # which rows were largest is for the gradient

    def windows(x: Any, kernel: Any, strides: Any, padding: Any, dilation: Any, ceil_mode: bool) -> tuple[Any, ...]:
        """lax.reduce_window's arguments for windows of the last axes, and for each axis (size, extent of a window, stride, padding)."""
        rank = len(kernel)
        strides, padding, dilation = (
            tuple(each) * (rank // len(each)) for each in (strides or kernel, *map(_listed, (padding, dilation)))
        )
        before, pads, axes = (1,) * (x.ndim - rank), [(0, 0)] * (x.ndim - rank), list[Any]()
        for size, pad, count, stride, step in zip(x.shape[-rank:], padding, kernel, strides, dilation, strict=True):
            axes.append((size, step * (count - 1) + 1, stride, pad))
            pads.append((pad, _after_ceil(*axes[-1]) if ceil_mode else pad))
        return ((*before, *kernel), (*before, *strides), pads, (1,) * x.ndim, (*before, *dilation)), axes

    def max_pool(
        x: Any, kernel: Any, strides: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
    ) -> Any:
        """The largest elements of windows in their own type, and their places: the first one's, or the last NaN's."""
        how, axes = windows(x, kernel, strides, padding, dilation, ceil_mode)
        sizes = [size for size, *_ in axes]
        least = jnp.asarray(-jnp.inf if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.iinfo(x.dtype).min, x.dtype)

        def best(one: Any, other: Any) -> Any:
            (x, at), (y, at_y) = one, other
            is_first = jnp.where((x != x) & (y != y), at > at_y, (x != x) | (x > y) | ((x == y) & (at < at_y)))
            return jnp.where(is_first, x, y), jnp.where(is_first, at, at_y)

        places = jnp.broadcast_to(jnp.arange(math.prod(sizes)).reshape(sizes), x.shape)
        after_all = jnp.asarray(_END, places.dtype)
        return (
            lax.reduce_window(x, least, lax.max, *how),
            lax.reduce_window((x, places), (least, after_all), best, *how)[1],
        )

    def mean_pool(
        x: Any,
        kernel: Any,
        strides: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        with_padding: bool = True,
        divisor: Any = None,
    ) -> Any:
        """Sums of windows by their elements, of which those of the padding count or not; those after it, of ceil_mode, do not."""
        how, axes = windows(x, kernel, strides, padding, 1, ceil_mode)
        total = lax.reduce_window(x, jnp.zeros((), x.dtype), lax.add, *how)
        counts = jnp.ones((), "int64") if divisor is None else jnp.asarray(divisor)
        for count, (size, extent, stride, pad) in zip(total.shape[-len(axes) :], axes, strict=True):
            first = jnp.arange(count) * stride - pad
            last = jnp.minimum(first + extent, size + (pad if with_padding else 0))
            held = last - (first if with_padding else jnp.maximum(first, 0))
            counts = counts[..., None] * (held if divisor is None else jnp.ones_like(held))
        return lax.div(total, jnp.broadcast_to(counts.astype(x.dtype), total.shape))

    def smoothed(method: str) -> Row:
        """A picture of another size, each element of which is a mean of those that it stands for; JAX's kernels are PyTorch's."""

        def resized(x: Any, size: Any, align_corners: bool, factors: Any = None) -> Any:
            if align_corners:
                raise NotImplementedError("align_corners and antialias at once")
            before = x.shape[-2:]
            size = size or [math.floor(extent * factor) for extent, factor in zip(before, factors, strict=True)]
            scale = factors or [after / extent for after, extent in zip(size, before, strict=True)]
            axes, wide = (x.ndim - 2, x.ndim - 1), jnp.promote_types(x.dtype, "float32")
            how = jnp.asarray(scale, wide), jnp.zeros(2, wide), method
            return jax.image.scale_and_translate(x, (*x.shape[:-2], *size), axes, *how, antialias=True)

        return rounded_once(jax, resized)

    pools = {
        **dict.fromkeys((aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default), max_pool),
        **dict.fromkeys((aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d), rounded_once(jax, mean_pool)),
    }
    return {
        **pools,
        aten._upsample_bilinear2d_aa.vec: smoothed("linear"),
        aten._upsample_bicubic2d_aa.vec: smoothed("cubic"),
        aten._embedding_bag.default: bag,
        aten._embedding_bag_forward_only.default: bag,
        aten.scaled_dot_product_attention.default: attention,
        aten.lstm.input: stepped(lstm, 4),
        aten.gru.input: stepped(gru, 3),
        aten.rnn_tanh.input: stepped(lambda of_x, state, of_h: (jnp.tanh(of_x + of_h),), 1),
        aten.rnn_relu.input: stepped(lambda of_x, state, of_h: (nn.relu(of_x + of_h),), 1),
    }


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _after_ceil(size: Any, extent: int, stride: int, pad: int) -> Any:
    """Elements after an axis such that its last window is whole: one that begins in the padding after the axis is left out."""
    windows = min(-((extent - size - 2 * pad) // stride), (size + pad - 1) // stride) + 1
    return max((windows - 1) * stride + extent - size - pad, 0)


def _of_convolutions(torch: ModuleType, jax: ModuleType, table: Mapping[Any, Any]) -> dict[Any, Row]:
    """torchax's convolution, and its gradient, which PyTorch's gradients call, as JAX's."""
    jnp, aten = jax.numpy, torch.ops.aten

    def convolution(x: Any, weight: Any, bias: Any, *how: Any) -> Any:
        """torchax wants kernels of a transposed convolution as (input of a group, group, output); PyTorch has groups first."""
        *_, is_transposed, _, groups = how
        if is_transposed and groups > 1:
            of_groups = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
            weight = jnp.swapaxes(of_groups, 0, 1).reshape(weight.shape)
        # One number for all axes is a list of one, which torchax lengthens in its place.
        copies = [list(each) if isinstance(each, list | tuple) else each for each in how]
        return table[aten.convolution].func(x, weight, bias, *copies)

    def backward(of_result: Any, x: Any, weight: Any, biases: Any, *given: Any) -> Any:
        *how, wanted = given
        of_x, of_weight = jax.vjp(lambda x, weight: convolution(x, weight, None, *how), x, weight)[1](of_result)
        of_bias = jnp.sum(of_result, axis=(0, *range(2, of_result.ndim)))
        return [
            found if is_wanted else None for found, is_wanted in zip((of_x, of_weight, of_bias), wanted, strict=True)
        ]

    return {aten.convolution.default: convolution, aten.convolution_backward.default: backward}
