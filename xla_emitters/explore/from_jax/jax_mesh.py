"""Meshes of JAX for devices that need not be there: what `from_jax` is told about several devices, as JAX takes it.

    mesh_of(jax, {"x": 2, "y": 4}, 8)       an AbstractMesh of eight devices
    placed(jax, PartitionSpec("x"), mesh, ...)      NamedSharding(mesh, PartitionSpec("x")), in trees too

Source: JAX's documentation of AbstractMesh and of NamedSharding.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any, cast

from xla_emitters.errors import UsageError
from xla_emitters.explore.from_jax.jax_words import STAGE

_AXES = 'mesh={"x": 2, "y": 4}, or a Mesh or an AbstractMesh of JAX'


def mesh_of(jax: Any, mesh: Any, devices: int | None) -> Any:
    """JAX's mesh, of what a user gives; `jax` is the module.

    raises  UsageError for what is no mesh, and for another number of devices than it has
    """
    if isinstance(mesh, Mapping):
        axes = cast("Mapping[str, int]", mesh)
        if not axes or not all(type(size) is int and size > 0 for size in axes.values()):
            raise UsageError(f"this is no mesh: {mesh}", stage=STAGE, help=_AXES)
        auto = (jax.sharding.AxisType.Auto,) * len(axes)
        mesh = jax.sharding.AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=auto)
    if not hasattr(mesh, "axis_names"):
        raise UsageError(f"this is no mesh: {mesh!r}", stage=STAGE, help=_AXES)
    size = prod(mesh.shape.values())
    if devices not in (None, size):
        raise UsageError(f"the mesh has {size} devices, not {devices}", stage=STAGE)
    return mesh


def placed(jax: Any, tree: Any, mesh: Any, name: str) -> Any:
    """A tree of shardings, with those that are PartitionSpecs on the mesh. raises UsageError without a mesh for them"""
    spec = jax.sharding.PartitionSpec

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, spec):
            return leaf
        if mesh is None:
            raise UsageError(f"{name} has {leaf}, which is on a mesh", stage=STAGE, help=_AXES)
        return jax.sharding.NamedSharding(mesh, leaf)

    def is_leaf(found: Any) -> bool:
        return found is None or isinstance(found, spec)

    return jax.tree.map(one, tree, is_leaf=is_leaf)


def within(jax: Any, mesh: Any) -> AbstractContextManager[Any]:
    """The mesh as the one that JAX traces and lowers functions for."""
    if mesh is None:
        return nullcontext()
    is_abstract = isinstance(mesh, jax.sharding.AbstractMesh)
    return jax.sharding.use_abstract_mesh(mesh) if is_abstract else jax.set_mesh(mesh)
