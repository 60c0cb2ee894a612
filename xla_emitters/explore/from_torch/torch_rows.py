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
from functools import partial
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
        return partial(_with_defaults, target, found.func) if hasattr(target, "_schema") else found.func

    def is_own(self, target: Any) -> bool:
        return target in self.own or getattr(target, "overloadpacket", target) in self.own

    def is_decomposed(self, target: Any) -> bool:
        """Whether PyTorch's decomposition is taken in place of torchax's row, which has other arguments than the op."""
        return getattr(target, "overloadpacket", target) is self.torch.ops.aten.native_layer_norm_backward

    def is_random(self, target: Any) -> bool:
        """Whether torchax computes an op with a state of its own, of which it has one: that of random numbers."""
        found = self.table.get(target) or self.table.get(getattr(target, "overloadpacket", target))
        return found is not None and found.needs_env

    def dtype(self, element: Any) -> Any:
        """NumPy's type for PyTorch's."""
        return self.mappings.t2j_dtype(element)

    def array(self, tensor: Any) -> Any:
        """JAX's array of a tensor's elements."""
        return self.mappings.t2j(tensor.detach())

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
        **_of_numbers(torch, jax, mappings.t2j_dtype),
        **_of_lines(torch, jax, mappings.t2j_dtype),
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


def _of_numbers(torch: ModuleType, jax: ModuleType, types: Callable[[Any], Any]) -> dict[Any, Row]:
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
        return lambda x, dim, *, dtype=None: function(to_sum(x, dtype), axis=dim if x.ndim else None).reshape(x.shape)

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

    erfcx = jax.scipy.special.erfcx

    def sign(x: Any) -> Any:
        """Of what is no number 0, if it is not complex."""
        return jnp.sign(x) if jnp.iscomplexobj(x) else jnp.where(x == x, jnp.sign(x), 0)

    return {
        aten.sign.default: sign,
        aten.sgn.default: sign,
        # torchax multiplies e^(x^2), which overflows.
        aten.special_erfcx.default: lambda x: erfcx(x.astype(jnp.promote_types(x.dtype, "float32"))),
        # torchax has truth values for these.
        aten.__and__: operator.and_,
        aten.__or__: operator.or_,
        aten.__xor__: operator.xor,
        aten.neg.default: operator.neg,
        aten.sum.default: total(jnp.sum),
        aten.sum.dim_IntList: total(jnp.sum),
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


def _of_lines(torch: ModuleType, jax: ModuleType, types: Callable[[Any], Any]) -> dict[Any, Row]:
    """Arrays made of sizes, and what is computed along one axis."""
    jnp, lax, aten = jax.numpy, jax.lax, torch.ops.aten

    def steps(start: Any, end: Any, step: Any = 1, *, dtype: Any = None, **_: Any) -> Any:
        """From `start` up to `end`: any of them may be a size. The type is what PyTorch says of the result."""
        if all(isinstance(each, int | float) for each in (start, end, step)):
            return jnp.arange(start, end, step)
        return start + step * jnp.arange(-((start - end) // step))

    def largest(x: Any, k: int, dim: int = -1, is_largest: bool = True, is_sorted: bool = True) -> Any:
        """One sort of each line, of which the first `k` are taken."""
        x = jnp.moveaxis(x, dim, -1)
        values, places = lax.top_k(x if is_largest else -x if jnp.issubdtype(x.dtype, jnp.floating) else ~x, k)
        values = values if is_largest else jnp.take_along_axis(x, places, axis=-1)
        return jnp.moveaxis(values, -1, dim), jnp.moveaxis(places, -1, dim)

    def so_far(best: Row) -> Row:
        """The best of the elements so far, and the last place that has it."""

        def line(x: Any, dim: int) -> Any:
            axis = dim % max(x.ndim, 1)
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

    return {
        aten.pad.default: padded,
        aten.select.int: selected,
        aten.slice_scatter.default: with_slice,
        aten.view.dtype: of_bits,
        aten.repeat_interleave.self_int: repeated,
        aten.arange.start_step: steps,
        aten.arange.start: steps,
        aten.arange.default: lambda end, **_: steps(0, end),
        aten.topk.default: largest,
        aten.cummax.default: so_far(lax.cummax),
        aten.cummin.default: so_far(lax.cummin),
        aten.logcumsumexp.default: lambda x, dim: lax.cumlogsumexp(x, axis=dim % max(x.ndim, 1)),
        aten.broadcast_tensors.default: lambda tensors: list(jnp.broadcast_arrays(*tensors)),
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

    return {
        aten._embedding_bag.default: bag,
        aten._embedding_bag_forward_only.default: bag,
        aten.scaled_dot_product_attention.default: attention,
        aten.lstm.input: stepped(lstm, 4),
        aten.gru.input: stepped(gru, 3),
        aten.rnn_tanh.input: stepped(lambda of_x, state, of_h: (jnp.tanh(of_x + of_h),), 1),
        aten.rnn_relu.input: stepped(lambda of_x, state, of_h: (nn.relu(of_x + of_h),), 1),
    }


def _of_convolutions(torch: ModuleType, jax: ModuleType, table: Mapping[Any, Any]) -> dict[Any, Row]:
    """torchax's convolution, and its gradient, which PyTorch's gradients call, as JAX's."""
    jnp, aten = jax.numpy, torch.ops.aten

    def convolution(x: Any, weight: Any, bias: Any, *how: Any) -> Any:
        """torchax wants kernels of a transposed convolution as (input of a group, group, output); PyTorch has groups first."""
        *_, is_transposed, _, groups = how
        if is_transposed and groups > 1:
            of_groups = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
            weight = jnp.swapaxes(of_groups, 0, 1).reshape(weight.shape)
        return table[aten.convolution].func(x, weight, bias, *how)

    def backward(of_result: Any, x: Any, weight: Any, biases: Any, *given: Any) -> Any:
        *how, wanted = given
        of_x, of_weight = jax.vjp(lambda x, weight: convolution(x, weight, None, *how), x, weight)[1](of_result)
        of_bias = jnp.sum(of_result, axis=(0, *range(2, of_result.ndim)))
        return [
            found if is_wanted else None for found, is_wanted in zip((of_x, of_weight, of_bias), wanted, strict=True)
        ]

    return {aten.convolution.default: convolution, aten.convolution_backward.default: backward}
