"""What ATen ops of arrays are in JAX: arithmetic, elements along axes, matrices. `torch_rows` has them in its table.

    aten.topk(x, k, dim)          one sort of each line, of which the first `k` are taken

They replace rows of torchax that round, overflow, need known sizes, or have some of the cases.
"""

# The rows are functions of JAX's arrays, which have no types here.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import ModuleType
from typing import Any

Row = Callable[..., Any]
END = 2**63 - 1
"""The end of a slice that PyTorch writes for none; a place after all."""
_FEW_ROWS = 25
"""Most rows between which PyTorch finds distances without a product."""


def rounded_once(jax: ModuleType, function: Row) -> Row:
    """The row in float32 where its arrays are of 16 bits, as PyTorch computes it: its result is converted, so it is rounded once."""

    def widened(value: Any) -> Any:
        return value.astype("float32") if getattr(value, "dtype", None) in ("float16", "bfloat16") else value

    @wraps(function)
    def row(*arguments: Any, **keywords: Any) -> Any:
        return function(*jax.tree.map(widened, arguments), **jax.tree.map(widened, keywords))

    return row


# ---------------------------------------------------------------------------------------------------------------- numbers


def of_numbers(
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


def of_lines(
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
            x = x.astype("int8") if x.dtype == "bool" else x
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
        end = None if end == END else end
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

    def reduced_into(x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
        """Without what is there, a maximum begins with the least number of its type; torchax takes that of floats for all."""
        if not include_self and reduce in ("amax", "amin") and not jnp.issubdtype(x.dtype, jnp.inexact):
            is_bool, is_least = x.dtype == jnp.bool_, reduce == "amax"
            start = not is_least if is_bool else getattr(jnp.iinfo(x.dtype), "min" if is_least else "max")
            x, include_self = table[aten.scatter.value].func(x, dim, index, start), True
        return table[aten.scatter_reduce].func(x, dim, index, source, reduce, include_self=include_self)

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
        aten.scatter_reduce.two: reduced_into,
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


def of_matrices(torch: ModuleType, jax: ModuleType) -> dict[Any, Row]:
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

    def of_hermitian(a: Any, triangle: str = "L", compute_v: bool = True) -> Any:
        """Of the named triangle alone, whatever is in the other one."""
        values, vectors = linalg.eigh(a, triangle, symmetrize_input=False)
        return [values, vectors if compute_v else jnp.zeros(0, a.dtype)]

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
        aten._linalg_eigh.default: of_hermitian,
        aten.linalg_qr.default: orthogonal,
        aten._fft_c2r.default: of_spectrum,
    }
