"""Splits fusions that XLA compiles with Triton or cuDNN into contractions and fusions with emitters. On HLO, in all control computations.

    f = f32[512,2048] fusion(x), kind=kCustom          f.reduce.0 = f32[512] fusion(x)                          max of a row
        backend_config: "kind":"__triton"        ->    f.reduce.1 = f32[512] fusion(f.reduce.0, x)              sum of exp(x - max)
        max, exp(x - max), sum, divide                 f.epilogue = f32[512,2048] fusion(.., x)                 exp(x - max) / sum

    g = bf16[64,64] fusion(x, w)                       g.prologue.0 = bf16[128,64] fusion(w)                    convert
        "kind":"__triton_nested_gemm_fusion"     ->    g.dot.0 = f32[64,64] dot(x, g.prologue.0)
        convert, dot, bias, convert                    g.epilogue = bf16[64,64] fusion(g.dot.0, b)              bias, convert

The HLO of such a fusion defines all that it computes; its configuration holds tile sizes only. Nested fusions and calls are inlined,
then the body is cut at the places that `graph/cuts.py` finds. Each part contains copies of the instructions that it needs, with their
locations, so every instruction keeps its value. Contractions become instructions of the control computation.

A fusion that contains an op for a library, such as a sort, is split in the same way, whatever its kind.

Fusions with instructions that no emitter has, and custom kernels (`__custom_fusion`), stay; emission refuses them by name and place.
Source: XLA's names of fusion kinds, backend_configs.proto.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xla_emitters.dialects.hlo.base import HloOp, owner_of
from xla_emitters.dialects.hlo.computation import (
    CallOp,
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    callees_of,
    reached_from,
)
from xla_emitters.dialects.hlo.library_calls import is_library_call
from xla_emitters.dialects.hlo.rule_ops import RuleOp
from xla_emitters.dialects.hlo.shape_ops import BitcastOp
from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.graph.control_computations import control_computations
from xla_emitters.graph.cuts import CutPart, cut_before, find_cuts
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.fusion_parts import NewComputation, Part, Parting
from xla_emitters.graph.names import Names
from xla_emitters.graph.refusals import is_splittable_kind, refuse_values, without_code
from xla_emitters.graph.view import FusionView, view_of
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.support.late_dataclass import dataclass

AddRemark = Callable[[Operation, str], None]
"""`KernelPass.skip` or `KernelPass.remark` of a pass."""


@dataclass(frozen=True)
class SplitTritonFusionsPass(KernelPass):
    """See the file's head. For a module of the `hlo` dialect.

    triton  as in `CompileOptions`: "rows" and "split" split, "refuse" leaves all fusions as they are
    """

    name = "xla-split-triton-fusions"

    triton: str = "split"

    def apply_to(self, op: ModuleOp) -> None:
        if self.triton not in ("rows", "split", "refuse"):
            raise UsageError(f"{self.name}: triton={self.triton}", help="rows, split or refuse")
        if self.triton != "refuse":
            split_triton_fusions(op, self.skip, self.remark)


def _silently(op: Operation, text: str) -> None:
    """The default of `skip` and `remark` when there is no pass."""


def split_triton_fusions(module: ModuleOp, skip: AddRemark = _silently, remark: AddRemark = _silently) -> None:
    """See the file's head. `skip` gets each of these fusions that stays, and the reason; `remark` how the others were split."""
    instructions = [op for computation in control_computations(module) for op in computation.instructions]
    fusions = [op for op in instructions if isinstance(op, FusionOp) and _is_split(view_of(op))]
    if not fusions:
        return
    before, names = set(reached_from([entry_of(module)])), Names(module)
    # With one fusion chosen by name, the rest of its module is still present and calls its computations.
    others = [op for op in module.ops if isinstance(op, ComputationOp) and op not in before]
    for fusion in fusions:
        view = view_of(fusion)  # its operands may be parts of a fusion split before
        if missing := [op for op in without_code(view) if not is_library_call(op)]:
            skip(fusion, f"no code for HLO op '{missing[0].opcode}' (instruction %{missing[0].instruction_name.data})")
            continue
        flat = _inlined(names, view)
        try:
            refuse_values(flat)
        except Unsupported as error:
            skip(fusion, error.message)
            continue
        parts = _Splitting(Parting(names, fusion, flat.computation), flat).split()
        remark(fusion, _remark(view, parts))
    for computation in before.difference(reached_from([entry_of(module), *others])):
        if computation.parent is not None:
            Rewriter.erase_op(computation)


def _is_split(view: FusionView) -> bool:
    """Whether a fusion is for Triton or cuDNN; or for XLA's emitters with an op that only a library computes: a sort."""
    if view.other_compiler is not None:
        return is_splittable_kind(view.other_compiler)
    return any(isinstance(op, RuleOp) and is_library_call(op) for op in view.instructions)


def _remark(view: FusionView, parts: Sequence[CutPart]) -> str:
    """The remark on a split fusion: how XLA would compile it, and the number of parts."""
    roles = (part.role if is_library_call(part.cuts[0]) else "fusion" for part in parts)
    counts = sorted(Counter(roles).items())
    made = " and ".join(f"{count} {role}{'s' * (count > 1)}" for role, count in counts) or "nothing: it is its operands"
    verb = "split into" if len(parts) > 1 else "made"
    if view.other_compiler is None:
        return f"%{view.name}: no kernel computes all of it; {verb} {made}"
    name = "cuDNN" if view.other_compiler.startswith("__cudnn") else "Triton"
    return f"%{view.name}: XLA would compile this with {name} ({view.other_compiler}); {verb} {made}"


# ---------------------------------------------------------------------------------------------------- inlining


def _inlined(names: Names, view: FusionView) -> FusionView:
    """The view of a fusion after its nested fusions and calls were inlined. The fusion then calls a computation of its own."""
    if not any(isinstance(op, FusionOp | CallOp) for op in view.computation.instructions):
        return view
    assert view.call is not None
    inlining = _Inlining()
    parameters = [inlining.copy(parameter, ()) for parameter in view.parameters]
    root = inlining.values_of(view.computation, parameters)
    for op in reversed(list(inlining.block.ops)):
        if isinstance(op, TupleOp) and op.result is not root and op.result.first_use is None:
            Rewriter.erase_op(op)
    made = inlining.finish(f"{view.computation.sym_name.data}.inlined", [root], view.computation)
    names.add_computation(made, view.computation)
    names.call_instead(view.call, made)
    return view_of(view.call)


class _Inlining(NewComputation):
    """A computation under construction without nested fusions and calls."""

    def values_of(self, computation: ComputationOp, arguments: Sequence[SSAValue]) -> SSAValue:
        """Adds the instructions of a computation applied to these arguments; returns its root."""
        values = dict[SSAValue, SSAValue]()
        for op in computation.instructions:
            operands = [values[operand] for operand in op.operands]
            match op:
                case ParameterOp():
                    values[op.result] = arguments[op.number.value.data]
                case FusionOp() | CallOp():
                    (callee,) = callees_of(op)
                    values[op.result] = self.values_of(callee, operands)
                case GetTupleElementOp() if isinstance(operands[0].owner, TupleOp):
                    values[op.result] = operands[0].owner.operands[op.index.value.data]
                case _:
                    values[op.result] = self.copy(op, operands)
        return values[computation.root]


# --------------------------------------------------------------------------------------------------- splitting


@dataclass(eq=False)
class _Splitting:
    """One fusion being split into its parts.

    made  value of the body -> value of the control computation
    """

    parting: Parting
    view: FusionView
    made: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def split(self) -> tuple[CutPart, ...]:
        """Replaces the fusion by its parts, and returns these."""
        for parameter, operand in zip(self.view.parameters, self.view.operands, strict=True):
            self.made[parameter.result] = operand
        parts = find_cuts(self.view)
        numbers, counts = Counter[str](), Counter(part.role for part in parts)
        for part in parts:
            suffix = f".{part.role}"
            if part.role != "epilogue" or counts[part.role] > 1:
                suffix += f".{numbers[part.role]}"
            numbers[part.role] += 1
            (first, *_) = part.cuts
            if is_library_call(first):
                self._contract(first, suffix)
            else:
                self._fuse(part, suffix if len(parts) > 1 else "")
        self.parting.replace([(root, self._on_host(root.result)) for root in self.view.roots])
        return parts

    def _contract(self, op: HloOp, suffix: str) -> None:
        """Copies a contraction into the control computation, without its tile sizes for Triton."""
        operands = [self._on_host(operand) for operand in op.operands]
        alone = op.clone()
        alone.operands = operands
        alone.attributes.pop("backend_config", None)
        alone.properties["name"] = StringAttr(f"{self.view.name}{suffix}")
        self.made[op.result] = self.parting.before(alone)
        alone.location = op.location

    def _fuse(self, part: CutPart, suffix: str) -> None:
        """Makes a fusion of a part."""
        fused = Part(self.view.computation)
        given = list[SSAValue]()
        for number, value in enumerate(part.reads):
            given.append(self._on_host(value))
            owner = owner_of(value)
            fused.taken[value] = fused.insert(ParameterOp(number, value.type, owner.instruction_name.data), owner)
            fused.parameters.append(-1)
        results = [fused.take(cut.result) for cut in part.cuts]
        name = f"{self.view.computation.sym_name.data}{suffix or '.fused'}"
        call = self.parting.call(fused, name, results, given, suffix)
        values = self.parting.elements(call.result) if len(results) > 1 else [call.result]
        self.made |= zip((cut.result for cut in part.cuts), values, strict=True)

    def _on_host(self, value: SSAValue) -> SSAValue:
        """The control computation's equal of a value in the body: a parameter or cut, an element of one, or a bitcast of these."""
        if value in self.made:
            return self.made[value]
        op = owner_of(value)
        name = op.instruction_name.data
        if isinstance(op, GetTupleElementOp):
            found = GetTupleElementOp([self._on_host(op.operands[0])], value.type, name, {"index": op.index})
        else:
            source = self._on_host(cut_before(value))
            if source.type == value.type:
                return source
            found = BitcastOp([source], value.type, name)
        self.made[value] = self.parting.before(found)
        found.location = op.location
        return self.made[value]
