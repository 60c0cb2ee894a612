"""A program in StableHLO that several devices run as it is, as a module of HLO text: it exchanges arrays itself, and needs no partitioner.

    mhlo.num_replicas = 4, with all_reduce, collective_permute ... of replicas        each device runs @main
    %0:2 = sdy.manual_computation(%x, %w) in_shardings=[...] ... {...}                 each device runs the region, with its parts of
    return %0#0, %0#1                                                                  @main's arguments: what jax.shard_map makes

The shardings of arguments and results become those of HLO's parameters and ROOT: whole arrays are cut and put together (`runtime/shards`).
A program with arrays of unknown size, or without exchanges, stays what it is: one device runs it, with whole arrays.
Source: Shardy's dialect (https://openxla.org/shardy/sdy_dialect); hlo_sharding.cc for the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import NoReturn

from xdsl.dialects.builtin import StringAttr

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.hlo.device_groups import counts_of, devices_of
from xla_emitters.dialects.hlo.types import has_dynamic_dims, is_array
from xla_emitters.errors import Unsupported
from xla_emitters.support.source import Source
from xla_emitters.text.hlo.hlo_printer import print_hlo
from xla_emitters.text.stablehlo.attribute_values import Attributes, Opaque, Symbol
from xla_emitters.text.stablehlo.computations import ModuleBuilder
from xla_emitters.text.stablehlo.reader import RULES
from xla_emitters.text.stablehlo.stablehlo_lexer import STAGE
from xla_emitters.text.stablehlo.stablehlo_parser import TreeParser
from xla_emitters.text.stablehlo.tree import Op, StableHloFunction, StableHloModule

OPTIMIZE = "xla-emitters optimize FILE makes a module that runs on all of them"
_MANUAL = "sdy.manual_computation"
_TO_PARTS = "SPMDFullToShardShape"
_WHOLE_BESIDE = "a computation of each device beside others of the whole arrays is still to be partitioned"


def module_for_devices(text: str, file: str, entry: str = "") -> str | None:
    """The HLO text; None for a program that is for one device, or has unknown sizes. The names of their ops were found before.

    raises as `parse_stablehlo`; Unsupported for one that is still to be partitioned
    """
    source = Source(text, file)
    parser = TreeParser(source)
    program = parser.program()
    function = program.functions.get(entry.removeprefix("@") or "main")
    said = None if function is None else _Shardings(source, program).of(function)
    module = ModuleBuilder(source, program, parser.aliases, RULES, entry.removeprefix("@")).module()
    if devices_of(module) == 1 or any(
        isinstance(op, HloOp) and has_dynamic_dims(op.result.type) for op in module.walk()
    ):
        return None
    for name, count in zip(("replica_count", "num_partitions"), counts_of(module), strict=True):
        module.attributes[f"hlo.{name}"] = StringAttr(str(count))
    if said is not None:
        _note(next(op for op in module.ops if isinstance(op, ComputationOp) and op.is_entry), *said)
    return print_hlo(module)


def _note(entry: ComputationOp, parameters: Sequence[str], results: Sequence[str]) -> None:
    """Notes HLO's shardings, "" for none, at the parameters and the root."""
    for op in entry.parameters:
        if said := parameters[op.number.value.data]:
            op.attributes["sharding"] = StringAttr(said)
    root = entry.root.owner
    if results and all(results) and isinstance(root, HloOp):
        root.attributes["sharding"] = StringAttr(
            results[0] if is_array(root.result.type) else f"{{{', '.join(results)}}}"
        )


class _Shardings:
    """The shardings of a program in HLO's spelling."""

    def __init__(self, source: Source, program: StableHloModule) -> None:
        self._source = source
        self._meshes = {name: _axes(text) for name, text in program.meshes.items()}

    def of(self, function: StableHloFunction) -> tuple[list[str], list[str]]:
        """Of the arguments and the results; a function that is one manual computation becomes its region."""
        manual = next((op for op in function.body.ops if op.name == _MANUAL), None)
        if manual is None:
            given = function.parameter_attributes or [None] * len(function.body.arguments)
            results = function.result_attributes or [None] * len(function.results)
            parts = [self._attribute(function, each) for each in given]
            self._refuse_whole_arrays(function, parts)
            return parts, [self._attribute(function, each) for each in results]
        whole = [op for op in function.body.ops if op.name != "sdy.sharding_group"]
        results = whole[-1].operands if len(whole) == 2 else []
        manual.written |= {
            key: manual.attributes.text(attr) for key, attr in manual.attributes.found.items()
        }  # in generic form
        axes = re.findall(r'"([^"]+)"', manual.written.get("manual_axes", ""))
        meshes = [
            mesh
            for mesh in self._meshes.values()
            if set(axes) == {name for name, size in mesh.items() if size > 1 or name in axes}
        ]
        if manual.operands != function.body.arguments or results != manual.results or len(whole) != 2 or not meshes:
            self._refuse(manual, _WHOLE_BESIDE)
        counts = ("in_shardings", len(manual.operands)), ("out_shardings", len(results))
        found = [self._listed(manual, key, count) for key, count in counts]
        (region,) = manual.regions
        region.around = None
        function.body, function.results = region, [value.type for value in region.returned.operands]
        return found[0], found[1]

    def _refuse_whole_arrays(self, function: StableHloFunction, parts: Sequence[str]) -> None:
        """raises Unsupported for the form of `jax.shard_map` before Shardy, unless each device has the whole arrays there too."""
        is_cut = any(said not in ("", "{replicated}") for said in parts)
        for op in function.body.ops:
            target = op.attributes.found.get("call_target_name")
            if target is None or not isinstance(target.value, Symbol) or target.value.name != _TO_PARTS:
                continue
            if is_cut or op.operands[0].type != op.results[0].type:
                self._refuse(op, _WHOLE_BESIDE)

    def _attribute(self, function: StableHloFunction, given: Attributes | None) -> str:
        for name in ("mhlo.sharding", "sdy.sharding"):
            if given is not None and name in given:
                value = given.found[name].value
                text = value.text if isinstance(value, Opaque) else str(value)
                said = text if name == "mhlo.sharding" else self._hlo(function, text)
                if name == "sdy.sharding" and said != "{replicated}":  # of Shardy's whole arrays
                    self._refuse(
                        function, "an argument that is cut outside of a manual computation is still to be partitioned"
                    )
                return said
        return ""

    def _listed(self, op: Op, key: str, count: int) -> list[str]:
        """`[<@mesh, [{"x"}, {}]>, <@mesh, []>]`"""
        found = re.findall(r"<[^<>]*>", op.written.get(key, ""))
        if len(found) != count:
            self._refuse(op, f"{key} of '{op.name}' are not read")
        return [self._hlo(op, text) for text in found]

    def _hlo(self, at: Op | StableHloFunction, text: str) -> str:
        """`<@mesh, [{"x"}, {}]>` as `{devices=[4,1]<=[4]}`."""
        found = re.search(r"<@\"?([\w.$-]+)\"?,\s*\[(.*?)\]\s*(?:,.*)?>", text, re.DOTALL)
        mesh = self._meshes.get(found[1]) if found else None
        if found is None or not mesh or ":(" in text:
            self._refuse(at, f"the sharding {text} is not read: a mesh by its name, and whole axes")
        dims = [re.findall(r'"([^"]+)"', dim) for dim in re.findall(r"\{([^{}]*)\}", found[2])]
        tiles, names = [prod(mesh[axis] for axis in dim) for dim in dims], list(mesh)
        if all(size == 1 for size in tiles):
            return "{replicated}"
        used = [names.index(axis) for dim in dims for axis in dim]
        order = [*used, *(axis for axis in range(len(names)) if axis not in used)]
        sizes = [mesh[name] for name in names]
        copies = prod(sizes) // prod(tiles)
        listed = ",".join(map(str, [*tiles, copies] if copies > 1 else tiles))
        turned = "" if order == sorted(order) else f"T({','.join(map(str, order))})"
        end = " last_tile_dim_replicate" if copies > 1 else ""
        return f"{{devices=[{listed}]<=[{','.join(map(str, sizes))}]{turned}{end}}}"

    def _refuse(self, at: Op | StableHloFunction, why: str) -> NoReturn:
        raise Unsupported(why, stage=STAGE, place=self._source.place(at.token.start, at.token.end), help=OPTIMIZE)


def _axes(text: str) -> Mapping[str, int]:
    """Axis -> size, of `sdy.mesh @mesh = <["x"=4]>`; nothing for devices in an order of their own."""
    if "device_ids" in text:
        return {}
    return {name: int(size) for name, size in re.findall(r'"([^"]+)"=(\d+)', text)}
