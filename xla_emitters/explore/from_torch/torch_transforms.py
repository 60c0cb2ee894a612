"""Modules that compute with `torch.func`'s transforms, as modules of ATen ops, which `torch.export` takes.

    grad(loss)(parameters)     ->     the ops of the loss, then those of its gradient

torch.export does not trace through grad, vmap and jvp: it meets tensors of theirs where it wants its own. `make_fx` traces what they
execute: with the unknown sizes as symbols, each axis its own, and all other sizes as they are. What is traced is exported afterwards, where
sizes are checked as for any module; what a condition in Python asked about them would be lost, and is refused.
Source: PyTorch's documentation of make_fx; torch/fx/experimental/symbolic_shapes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from xla_emitters.errors import Unsupported

_OF_LAYOUTS = ("_subclasses", "_prims_common")
"""Where PyTorch asks about the layouts of tensors without elements. It asks again when what was traced is exported."""


def without_transforms(
    torch: ModuleType,
    module: Any,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    dims: Sequence[Sequence[Any]],
) -> Any:
    """A module with the parameters and buffers of `module` that does the same, for arguments like these.

    dims    for each leaf of the arguments a Dim or None for each axis
    raises  Unsupported where the module's Python asks about an unknown size
    """
    symbolic = torch.fx.experimental.symbolic_shapes
    tree, env = torch.utils._pytree, symbolic.ShapeEnv(duck_shape=False)
    mode = torch._subclasses.fake_tensor.FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    of_symbol = dict[str, Any]()

    def fake(value: Any, of_axes: Sequence[Any] = ()) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        of_axes = [*of_axes, *[None] * (value.ndim - len(of_axes))]
        kinds = symbolic.DimDynamic
        sizes = [kinds.STATIC if dim is None or isinstance(dim, int) else kinds.DYNAMIC for dim in of_axes]
        made = mode.from_tensor(value.detach(), symbolic_context=symbolic.StatelessSymbolicContext(dynamic_sizes=sizes))
        for extent, dim in zip(made.shape, of_axes, strict=True):
            if not isinstance(extent, int):
                of_symbol[str(extent)] = dim
        return made

    leaves, spec = tree.tree_flatten((arguments, dict(keywords)))
    given = [fake(leaf, of_axes) for leaf, of_axes in zip(leaves, [*dims, *[()] * len(leaves)], strict=False)]
    state = {name: fake(value) for name, value in _state(module).items()}

    def function(state: Mapping[str, Any], given: Sequence[Any]) -> Any:
        inside, by_name = tree.tree_unflatten(given, spec)
        return torch.func.functional_call(module, state, inside, by_name)

    with mode:
        traced = torch.fx.experimental.proxy_tensor.make_fx(function)(state, given)
    layouts = [Path(str(torch.__file__)).parent / name for name in _OF_LAYOUTS]
    for guard in env.guards:
        asked_by = Path(getattr(getattr(guard.sloc, "framework_loc", None), "filename", ""))
        if not (any(map(asked_by.is_relative_to, layouts)) or _is_known(guard.expr, of_symbol)):
            raise Unsupported(
                f"{type(module).__name__} asks whether {guard.expr} for unknown sizes, beside a transform of torch.func",
                stage="torch",
                help="give that size: leave its Dim out",
            )
    made = copy(module)

    @wraps(module.forward)
    def forward(*inside: Any, **by_name: Any) -> Any:
        return traced(_state(made), tree.tree_leaves((inside, by_name)))

    made.forward = forward
    return made


def _state(module: Any) -> dict[str, Any]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _is_known(condition: Any, dims: Mapping[str, Any]) -> bool:
    """Whether a condition follows from the Dims: two sizes of one are equal, and each is at least its `min`."""
    one, other = condition.args
    if type(condition).__name__ == "Equality":
        return str(one) in dims and str(other) in dims and _name(dims[str(one)]) == _name(dims[str(other)])
    least = getattr(dims.get(str(one)), "min", 0)
    return (
        type(condition).__name__ in ("GreaterThan", "StrictGreaterThan")
        and str(other).isdigit()
        and least > int(other) - (type(condition).__name__ == "GreaterThan")
    )


def _name(dim: Any) -> Any:
    return getattr(dim, "__name__", dim)
