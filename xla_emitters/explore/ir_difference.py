"""How far two kernel modules are the same: the IR that a pass of XLA's left against what ours left.

    same      equal once values are renumbered
    renamed   equal but for spelling: scf.forall for thread ids, discardable attributes, names of variables of maps, names and order
              of functions, places of constants and ids
    folded    equal once the rewrites below are made and both are folded, by our xla-simplify-arith, xla-canonicalize and xla-cse
    reordered then the same ops of the same values in the same regions, in another order
    differs   else: with the ops of which one side has more, both folded

`REWRITES` take back what docs/decisions says that we do otherwise on purpose. A decision is cited where its rewrite changes one side
and not the other; and decision 02, which says which checks of bounds we drop before XLA does, where folding takes as many from one side
as it had more. What is not in the table is not explained. The op counts of `differs` say what, not why.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from xdsl.context import Context
from xdsl.dialects import gpu
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, ModuleOp, VectorType, i32, i64
from xdsl.dialects.llvm import InsertElementOp, LLVMArrayType
from xdsl.dialects.vector import ExtractOp, InsertOp, TransferReadOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.hints import isa

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.mlir.llvm import GlobalOp, PoisonOp
from xla_emitters.dialects.mlir.llvm.memory import GEPOp, LoadOp, StoreOp
from xla_emitters.dialects.mlir.nvvm import GriddepcontrolOp
from xla_emitters.dialects.mlir.vector import FromElementsOp
from xla_emitters.dialects.xla_gpu.loops import ApplyIndexingOp, LoopOp
from xla_emitters.dialects.xla_gpu.tensors import PdlWaitOp
from xla_emitters.errors import XlaEmittersError
from xla_emitters.indexing import IndexingMap, Variable
from xla_emitters.rewrite.folders import constant_integer
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.transforms.canonicalize import CanonicalizePass
from xla_emitters.transforms.cse import CsePass
from xla_emitters.transforms.from_upstream_spelling import FromUpstreamSpellingPass
from xla_emitters.transforms.simplify_arith import SimplifyArithPass

VERDICTS = ("same", "renamed", "folded", "reordered", "differs")
CHECKS = "02-the-seed-and-the-stages.md", "checks of bounds that ranges decide are dropped earlier"
# Values that are written where they are used, so that their places do not count.
_INLINED = frozenset(
    (
        "arith.constant",
        "llvm.mlir.constant",
        "llvm.mlir.undef",
        "llvm.mlir.poison",
        "ub.poison",
        "gpu.thread_id",
        "gpu.block_id",
        "nvvm.read.ptx.sreg.tid.x",
        "nvvm.read.ptx.sreg.ctaid.x",
    )
)


# Ops whose last operand is a position, of any integer type.
_POSITION = frozenset(("llvm.extractelement", "llvm.insertelement"))
# As maps name them.
_IDS = {"gpu.thread_id": "th", "gpu.block_id": "bl"}
_OTHER_NAMES = {"nvvm.barrier0": "nvvm.barrier"}
# What an op means without the property.
_DEFAULTS = frozenset(
    (
        ("overflowFlags", "0"),
        ("overflowFlags", "#arith.overflow<none>"),
        ("fastmath", "#arith.fastmath<none>"),
        ("operandSegmentSizes", "array<i32: 0, 0, 0>"),
    )
)


@dataclass(frozen=True)
class Rewrite:
    """What is taken back: a file of docs/decisions, words for it, and the function that says whether it changed the module."""

    decision: str
    what: str
    apply: Callable[[ModuleOp], bool]


@dataclass(frozen=True)
class Difference:
    """verdict    one of VERDICTS
    ops        op -> (how many ours, how many XLA's), both folded, where they differ; of a verdict other than "differs" empty
    decisions  files of docs/decisions that explain the difference or a part of it, with the words for it
    """

    verdict: str
    ops: dict[str, tuple[int, int]]
    decisions: tuple[tuple[str, str], ...] = ()


class KernelIr:
    """One side at one point, and its normal forms; `module` is not changed."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.ops = sum(1 for op in module.walk() if op is not module)

    @cached_property
    def exact(self) -> list[str]:
        """Values renumbered, all attributes kept."""
        return listing(self.module, keeps_spelling=True)

    @cached_property
    def spelled(self) -> ModuleOp:
        """In our spelling."""
        copy = self.module.clone()
        run_pass(FromUpstreamSpellingPass(), make_context(), copy)
        return copy

    @cached_property
    def loose(self) -> list[str]:
        return listing(self.spelled, keeps_spelling=False)

    @cached_property
    def rewritten(self) -> tuple[ModuleOp, frozenset[Rewrite]]:
        """After all of REWRITES, and those that changed something."""
        copy = self.spelled.clone()
        return copy, frozenset(rewrite for rewrite in REWRITES if rewrite.apply(copy))

    @cached_property
    def taken_back(self) -> list[str]:
        return listing(self.rewritten[0], keeps_spelling=False)

    @cached_property
    def folded(self) -> ModuleOp:
        copy, context = self.rewritten[0].clone(), make_context()
        for _ in range(2):
            for each in (SimplifyArithPass(), CanonicalizePass(), CsePass()):
                _run_if_it_can(each, context, copy)
        return copy

    @cached_property
    def folded_loose(self) -> list[str]:
        return listing(self.folded, keeps_spelling=False)

    @cached_property
    def values(self) -> Counter[str]:
        return _values(self.folded)

    @cached_property
    def counts(self) -> Counter[str]:
        """Ops of the folded form, those that are written where they are used left out."""
        names = (op.name for op in self.folded.walk() if op.name not in _INLINED and op is not self.folded)
        return Counter(_OTHER_NAMES.get(name, name) for name in names)


def difference(ours: KernelIr, theirs: KernelIr) -> Difference:
    """What is between the two."""
    if ours.exact == theirs.exact:
        return Difference("same", {})
    if ours.loose == theirs.loose:
        return Difference("renamed", {})
    one_sided = ours.rewritten[1] ^ theirs.rewritten[1]
    cited = tuple(dict.fromkeys((each.decision, each.what) for each in REWRITES if each in one_sided))
    if ours.taken_back == theirs.taken_back:
        return Difference("folded", {}, decisions=cited)
    if _checks(ours.rewritten[0]) != _checks(theirs.rewritten[0]) and _checks(ours.folded) == _checks(theirs.folded):
        cited = (*cited, CHECKS)
    if ours.folded_loose == theirs.folded_loose:
        return Difference("folded", {}, decisions=cited)
    if ours.values == theirs.values:
        return Difference("reordered", {}, decisions=cited)
    names = dict.fromkeys((*ours.counts, *theirs.counts))
    ops = {name: (ours.counts[name], theirs.counts[name]) for name in names if ours.counts[name] != theirs.counts[name]}
    return Difference("differs", ops, cited)


def _checks(module: ModuleOp) -> int:
    return sum(1 for op in module.walk() if op.name in ("arith.cmpi", "scf.if"))


def listing(module: ModuleOp, *, keeps_spelling: bool) -> list[str]:
    """The module as lines that are equal for equal IR: values are numbered, each op is written in one form.

    keeps_spelling  with discardable attributes, names of functions, and every op at its place; else constants and ids are written
                    where they are used (an unused one is not), and functions are in the order of their text
    """
    functions = list(module.body.block.ops)
    names = {} if keeps_spelling else _names(functions)
    parts = [list(_Lines(names, keeps_spelling).of(function)) for function in functions]
    if not keeps_spelling:
        parts.sort()
    return [line for part in parts for line in part]


def _names(functions: list[Operation]) -> dict[str, str]:
    """Names of private functions -> what stands for all of them."""
    found: dict[str, str] = {}
    for function in functions:
        name, is_body = function.properties.get("sym_name"), any(region.blocks for region in function.regions)
        if name is not None and is_body:
            found[f"@{str(name).strip(chr(34))}"] = "@function"
    return found


class _Lines:
    """The lines of one function."""

    def __init__(self, names: dict[str, str], keeps_spelling: bool) -> None:
        self.names, self.keeps = names, keeps_spelling
        self.values: dict[SSAValue, str] = {}
        self.count = 0
        self.blocks: dict[Block, str] = {}

    def of(self, op: Operation, depth: int = 0) -> Iterator[str]:
        text = self.text(op)
        if not self.keeps and op.name in _INLINED:
            if isinstance(op, gpu.ThreadIdOp | gpu.BlockIdOp):
                text = f"{_IDS[op.name]}_{op.dimension.data.value}"
            for result in op.results:
                self.values[result] = text
            return
        for result in op.results:
            self._number(result)
        results = ", ".join(self.values[result] for result in op.results)
        yield f"{'  ' * depth}{results}{' = ' if results else ''}{text}"
        for region in op.regions:
            self.blocks |= {block: f"^{len(self.blocks) + n}" for n, block in enumerate(region.blocks)}
            for block in region.blocks:
                for argument in block.args:
                    self._number(argument)
                arguments = ", ".join(f"{self.values[argument]}: {argument.type}" for argument in block.args)
                yield f"{'  ' * depth}{self.blocks[block]}({arguments})"
                for inner in block.ops:
                    yield from self.of(inner, depth + 1)

    def _number(self, value: SSAValue) -> None:
        self.values[value] = f"%{self.count}"
        self.count += 1

    def text(self, op: Operation) -> str:
        """The op without its results."""
        values = [self._value(op, number) for number in range(len(op.operands))]
        operands = ", ".join(values)
        successors = "".join(f" {self.blocks[block]}" for block in op.successors)
        given = op.properties if not self.keeps else {**op.properties, **op.attributes}
        # Attributes of arguments and visibility are for later passes, as discardable attributes are.
        dropped = () if self.keeps else ("sym_name", "sym_visibility", "arg_attrs", "res_attrs", "range", "linkage")
        shown = {key: self._attribute(given[key]) for key in sorted(given) if key not in dropped}
        if not self.keeps:
            shown = {key: value for key, value in shown.items() if (key, value) not in _DEFAULTS}
        if not self.keeps and isinstance(op, ApplyIndexingOp | LoopOp):
            applied = op.indexing_map_attr.data
            count = applied.num_dims
            # The map says which operand is where.
            shown["indexing_map_attr"] = map_of_operands(applied, values[:count])
            operands = ", ".join(values[count:])
        attributes = " ".join(f"{key}={value}" for key, value in shown.items())
        types = ", ".join(str(result.type) for result in op.results)
        name = op.name if self.keeps else _OTHER_NAMES.get(op.name, op.name)
        return f"{name}({operands}){successors} {{{attributes}}} : {types}"

    def _value(self, op: Operation, number: int) -> str:
        """An operand, as it counts."""
        operand = op.operands[number]
        if not self.keeps:
            if isinstance(op, TransferReadOp) and operand is op.padding and _is_in_bounds(op):
                return "padding that is never read"
            if (
                op.name in _POSITION
                and number == len(op.operands) - 1
                and (known := constant_integer(operand)) is not None
            ):
                return str(known)
        return self.values.get(operand, "%?")

    def _attribute(self, value: object) -> str:
        if not self.keeps and isinstance(value, IntegerAttr):
            return str(value.value.data)
        text = str(value)
        return self.names.get(text, text)


def map_of_operands(applied: IndexingMap, operands: Sequence[str]) -> str:
    """A map in which operands are in the place of dims, r0, r1 ... in that of symbols, and the order of the dims does not count.

    >>> applied = IndexingMap.parse("(th_x, i)[s] -> (th_x * 4 + i + s), domain: th_x in [0, 1], i in [0, 2], s in [0, 3]")
    >>> map_of_operands(applied, ["%2", "%1"])
    '%2 * 4 + %1 + r0 for %1 in [0, 2], %2 in [0, 1], r0 in [0, 3]'
    """
    new = [*operands, *(f"r{number}" for number in range(applied.num_symbols))]
    numbers = iter(range(len(new)))
    kinds = ("dims", "range_vars", "runtime_vars")
    named = {kind: tuple(Variable(v.bounds, f"v{next(numbers)}_") for v in getattr(applied, kind)) for kind in kinds}
    text = re.sub(r"\bv(\d+)_\b", lambda number: new[int(number[1])], str(replace(applied, **named)))
    results, _, domain = text.partition(" -> (")[2].partition("), domain: ")
    return f"{results} for {', '.join(sorted(re.findall(r'[^]]+]', domain.replace('], ', ']'))))}"


def _is_in_bounds(op: TransferReadOp) -> bool:
    return all(is_inside == BoolAttr.from_bool(True) for is_inside in op.in_bounds)


def _values(module: ModuleOp) -> Counter[str]:
    """A multiset of the ops, each with what it is computed from, without their order."""
    known: dict[SSAValue, str] = {}
    keys: dict[Operation | None, str] = {None: ""}
    found: Counter[str] = Counter()
    lines = _Lines(_names(list(module.body.block.ops)), keeps_spelling=False)
    for op in module.walk():
        lines.values = {operand: known.get(operand, "") for operand in op.operands}
        lines.blocks |= {block: "" for region in op.regions for block in region.blocks}
        inside = "" if op.name in _INLINED else keys[op.parent_op()]
        key = keys[op] = str(hash((inside, lines.text(op))))
        known |= {result: f"{key}.{result.index}" for result in op.results}
        for number, block in enumerate(block for region in op.regions for block in region.blocks):
            known |= {argument: f"{key}.{number}.{argument.index}" for argument in block.args}
        if op.name not in _INLINED:
            found[key] += 1
    return found


def _run_if_it_can(each: SimplifyArithPass | CanonicalizePass | CsePass, context: Context, module: ModuleOp) -> None:
    """Runs a pass that folds; IR that it does not take, as that of a pass from elsewhere, is left as it is."""
    try:
        run_pass(each, context, module)
    except XlaEmittersError:
        return


# ---- what is taken back -----------------------------------------------------------------------------------------------------------------


def _without_waits(module: ModuleOp) -> bool:
    waits = [op for op in module.walk() if isinstance(op, PdlWaitOp | GriddepcontrolOp)]
    for op in waits:
        Rewriter.erase_op(op)
    return bool(waits)


def _addresses_of_elements(module: ModuleOp) -> bool:
    """`base[0, i]` of an array -> `base[i]` of its elements."""
    changed = False
    for op in module.walk():
        if isinstance(op, GEPOp) and isinstance(kind := op.properties["elem_type"], LLVMArrayType):
            first, *others = op.rawConstantIndices.get_values()
            if first == 0 and others:
                op.properties["elem_type"] = kind.type
                op.properties["rawConstantIndices"] = DenseArrayBase.from_list(i32, others)
                changed = True
    return changed


def _natural_alignment(module: ModuleOp) -> bool:
    stated = [op for op in module.walk() if isinstance(op, LoadOp | StoreOp) and "alignment" in op.properties]
    for op in stated:
        del op.properties["alignment"]
    return bool(stated)


def _static_positions(module: ModuleOp) -> bool:
    """`vector.extract %v[%c1]` of a constant -> `vector.extract %v[1]`, and `vector.insert` likewise."""
    changed = False
    for op in tuple(module.walk()):
        if not isinstance(op, ExtractOp | InsertOp) or len(op.dynamic_position) != 1:
            continue
        if (position := constant_integer(op.dynamic_position[0])) is not None:
            new = op.clone()
            new.operands = [*op.operands[:-1]]
            new.properties["static_position"] = DenseArrayBase.from_list(i64, [position])
            Rewriter.replace_op(op, new)
            changed = True
    return changed


def _elements_at_once(module: ModuleOp) -> bool:
    """Insertions at every position of a vector, one behind the other and each used by the next alone -> `vector.from_elements`."""
    changed = False
    for last in tuple(module.walk()):
        if not isinstance(last, InsertOp) or not isa(last.result.type, VectorType):
            continue
        chain, elements, op = list[Operation](), dict[int, SSAValue](), last
        while len(op.static_position) == 1 and not op.dynamic_position:
            elements.setdefault(op.static_position.get_values()[0], op.source)
            chain.append(op)
            below = op.dest.owner
            if not isinstance(below, InsertOp) or not op.dest.has_one_use():
                break
            op = below
        if len(elements) == prod(last.result.type.get_shape()):
            ordered = [elements[number] for number in sorted(elements)]
            Rewriter.replace_op(last, FromElementsOp(ordered, last.result.type))
            for dead in chain[1:]:
                Rewriter.erase_op(dead)
            changed = True
    return changed


def _elements_at_once_of_llvm(module: ModuleOp) -> bool:
    """`llvm.insertelement` at every position of a vector, likewise -> the same behind all of the elements, into poison."""
    changed = False
    for last in tuple(module.walk()):
        if not isinstance(last, InsertElementOp) or not isa(vector := last.results[0].type, VectorType):
            continue
        chain: list[Operation] = [last]
        while isinstance(below := chain[-1].operands[0].owner, InsertElementOp):
            if not below.results[0].has_one_use() or below.parent is not last.parent:
                break
            chain.append(below)
        positions = [constant_integer(op.operands[2]) for op in reversed(chain)]
        if positions == list(range(prod(vector.get_shape()))):
            poison = PoisonOp.create(result_types=[vector])
            Rewriter.insert_op(poison, InsertPoint.before(last))
            chain[-1].operands[0] = poison.results[0]
            for op in reversed(chain[1:]):
                op.detach()
                Rewriter.insert_op(op, InsertPoint.before(last))
            changed = True
    return changed


def _alignment_of_tiles(module: ModuleOp) -> bool:
    stated = [op for op in module.walk() if isinstance(op, GlobalOp) and "alignment" in op.properties]
    for op in stated:
        del op.properties["alignment"]
    return bool(stated)


REWRITES = (
    Rewrite("02-the-seed-and-the-stages.md", "positions in vectors stay values", _static_positions),
    Rewrite("02-the-seed-and-the-stages.md", "vectors are built by insertions", _elements_at_once),
    Rewrite("02-the-seed-and-the-stages.md", "vectors are built by insertions", _elements_at_once_of_llvm),
    Rewrite("01-what-the-ir-carries.md", "griddepcontrol.wait", _without_waits),
    Rewrite("02-the-seed-and-the-stages.md", "base[i] of elements for base[0][i] of an array", _addresses_of_elements),
    Rewrite("02-the-seed-and-the-stages.md", "the alignment of an access", _natural_alignment),
    Rewrite("02-the-seed-and-the-stages.md", "the alignment of shared memory, for wider accesses", _alignment_of_tiles),
)
