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
from xla_emitters.explore.from_torch.torch_array_rows import Row, of_lines, of_matrices, of_numbers, rounded_once
from xla_emitters.explore.from_torch.torch_network_rows import of_convolutions, of_gradients, of_networks, of_quantized
from xla_emitters.support.extras import install_command

_ROUNDED_ONCE = {
    *("_softmax", "softmax", "_log_softmax", "logaddexp", "logaddexp2", "silu", "glu"),
    *("native_layer_norm", "native_group_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training"),
    *("_adaptive_avg_pool2d", "_adaptive_avg_pool3d"),
    *("dist", "hypot", "_pdist_forward", "addbmm", "linalg_matrix_exp"),
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
        """Whether PyTorch draws random numbers, or torchax, in whose rows they are the one state."""
        if self.torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()):
            return True
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
        **of_numbers(torch, jax, mappings.t2j_dtype, registry.all_aten_ops),
        **of_lines(torch, jax, mappings.t2j_dtype, registry.all_aten_ops),
        **of_matrices(torch, jax),
        **of_networks(torch, jax),
        **of_convolutions(torch, jax, registry.all_aten_ops),
        **of_quantized(torch, jax),
    }
    own |= of_gradients(torch, jax, own, registry.all_aten_ops)
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

    def flexible(
        q: Any,
        k: Any,
        v: Any,
        changed: Any,
        blocks: Sequence[Any],
        scale: float,
        _: Any = None,
        for_scores: Sequence[Any] = (),
        for_mask: Sequence[Any] = (),
    ) -> Any:
        """Attention with scores that a graph changes, where another allows them; as PyTorch, which has logarithms to the base of 2."""
        jnp, wide = jax.numpy, jax.numpy.promote_types(q.dtype, "float32")
        k, v = (jnp.repeat(each, q.shape[1] // each.shape[1], axis=1) for each in (k, v))
        k, v = (jnp.broadcast_to(each, (q.shape[0], *each.shape[1:])) for each in (k, v))
        scores = jnp.einsum("bhsd,bhtd->bhst", q, k, preferred_element_type=wide) * scale

        def of_all(body: Any, more: Sequence[Any], *before: Any) -> Any:
            def function(*each: Any) -> Any:
                found = body.run([*each, *more])
                return found[0] if isinstance(found, list | tuple) else found

            for axis in (3, 2, 1, 0):
                which = [0 if axis == number else None for number in range(4)]
                function = jax.vmap(function, (*[0] * len(before), *which))
            return function(*before, *(jnp.arange(size, dtype="int32") for size in scores.shape))

        allowed = of_all(blocks[-1], for_mask)
        scores = jnp.where(allowed, of_all(changed, for_scores, scores), -jnp.inf)
        largest = jnp.max(scores, axis=-1)
        logarithm = jax.nn.logsumexp(scores, axis=-1)
        weights = jnp.where(jnp.isneginf(largest)[..., None], 0, jax.nn.softmax(scores, axis=-1))
        return weights.astype(q.dtype) @ v, logarithm / math.log(2), largest / math.log(2)

    return {
        higher.flex_attention: flexible,
        higher.with_effects: lambda token, op, *_, **__: (token, None),  # of assertions: see `_of_assertions`
        higher.cond: lambda which, then, otherwise, given=(): lax.cond(
            which, lambda *each: tuple(then.run(each)), lambda *each: tuple(otherwise.run(each)), *given
        ),
        higher.while_loop: loop,
        higher.scan: scan,
        higher.map_impl: lambda body, given, more: lax.map(lambda each: tuple(body.run([*each, *more])), tuple(given)),
    }
