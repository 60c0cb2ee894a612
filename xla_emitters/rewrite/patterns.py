"""The greedy pattern driver: applies patterns until none matches, and gives every new op a location.

    %0 = arith.constant 2.0 : bf16
    %1 = arith.mulf %0, %0 : bf16 loc("square")      ->   %1 = arith.constant 4.0 : bf16 loc("square")

Patterns are xDSL's (`RewritePattern`, `PatternRewriter`); the driver is ours because xDSL's gives folded ops `loc(unknown)`. An op that a
pattern inserts without a location gets the location of the op it replaces, or else of the matched op. With `fold`, ops whose value is
known become constants, and unused ops are erased.

Cost: one dictionary look-up per op for the patterns of its type. After a change only those ops are visited again for which it may matter:
the changed op, its users, the definitions of its operands and the only user that such a definition has left, and the op around a
terminator or an emptied block. The whole root is walked again, until nothing changes, where an op with regions was rewritten: its pattern
may have changed anything inside without reporting it. The driver terminates because patterns must make progress; patterns that undo each
other raise InternalError.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.attributes import numbers_of
from xla_emitters.dialects.completion import adopt
from xla_emitters.dialects.locations import UNKNOWN, locate, place_of
from xla_emitters.dialects.quick_builder import insert_op
from xla_emitters.dialects.quick_op import QuickOp, op_of, operands_of, walk
from xla_emitters.errors import InternalError
from xla_emitters.rewrite.constants import ConstantPool, entry_block
from xla_emitters.rewrite.effects import is_commutative_type, is_constant_type, is_dead
from xla_emitters.rewrite.folders import constant_to_the_right, fold_op, has_folder
from xla_emitters.rewrite.recorded_rewrites import record_wanted

MAX_ROUNDS = 10  # walks over the whole root; MLIR's canonicalize has the same limit
MAX_REWRITES_PER_OP = 200  # terminating sets of patterns were seen to need fewer than 10


def apply_patterns_by_type(
    root: Operation,
    patterns_of: Callable[[type[Operation]], Sequence[RewritePattern]],
    *,
    fold: bool = False,
    ctx: Context | None = None,
    begin_with: Container[type[Operation]] | None = None,
) -> bool:
    """Applies patterns to the ops inside `root`, outermost and first ones first, until none matches; returns whether anything changed.

    patterns_of  the patterns of an op's type, tried in order; called once per type
    fold         also fold ops to constants or to their operands, erase dead ones, and keep constants once per function, at its entry
    ctx          needed for folders of dialects that materialise their own constants
    begin_with   visit only ops of these types, and then what a change may matter to; None: all ops
    raises       InternalError if the patterns do not come to an end.
    """
    return _GreedyDriver(root, patterns_of, fold, ctx, begin_with).run()


Worklist = dict[Operation, None]
"""The ops to visit, last one first: a dictionary keeps its order, and `popitem` takes from its end."""


class LocatedRewriter(PatternRewriter):
    """xDSL's rewriter, which also gives new ops locations, makes xDSL's ours, and puts changed ops on the worklist."""

    def __init__(self, worklist: Worklist, root: Operation) -> None:
        super().__init__(InsertPoint.at_end(Block()))  # `start` sets the real one
        self.worklist = worklist
        self.root = root
        self.location: LocationAttr = UNKNOWN
        self.operation_insertion_handler.append(self._inserted)
        self.operation_removal_handler.append(self._removed)
        self.operation_modification_handler.append(self._push)

    if not TYPE_CHECKING:

        @property
        def insertion_point(self) -> InsertPoint:
            """In front of the matched op, unless a pattern set another; made when it is first asked for: most patterns do not match."""
            if self._point is None:
                self._point = InsertPoint.before(self._current_operation)
            return self._point

        @insertion_point.setter
        def insertion_point(self, point: InsertPoint) -> None:
            self._point = point

    def start(self, op: Operation) -> None:
        """Makes `op` the matched op."""
        self._current_operation = op
        self._point = None
        self.location = op.location
        self._name_hint = None
        self.has_done_action = False

    def insert(self, op: Any, insertion_point: InsertPoint | None = None) -> Any:
        if not isinstance(op, QuickOp) or self._name_hint is not None:
            return super().insert(op, insertion_point)
        self.has_done_action = True
        insert_op(op, self.insertion_point if insertion_point is None else insertion_point)
        self.handle_operation_insertion(op)
        return op

    def erase(self, op: Operation, safe_erase: bool = True) -> None:
        self.has_done_action = True
        self._removed(op)
        Rewriter.erase_op(op, safe_erase=safe_erase)

    def replace(
        self,
        op: Operation,
        new_ops: Operation | Sequence[Operation],
        new_results: Sequence[SSAValue | None] | None = None,
        safe_erase: bool = True,
    ) -> None:
        """As xDSL's, but each op that uses the results is put on the worklist once, and none if there are no new ops."""
        self.has_done_action = True
        made: Sequence[Operation]
        if isinstance(new_ops, tuple | list):  # first: to be told that one is no op, xDSL's metaclass must be asked
            made = new_ops
        else:
            made = (new_ops,) if isinstance(new_ops, Operation) else new_ops
        if made:
            matched, self.location = self.location, op.location
            self.insert(made[0] if len(made) == 1 else made, InsertPoint.before(op))
            self.location = matched
        if new_results is None:
            new_results = made[-1].results if made else ()
        if len(op.results) != len(new_results):
            raise ValueError(f"Expected {len(op.results)} new results, but got {len(new_results)}")
        for result in op.results:
            use = result.first_use
            while use is not None:
                self._push(use._operation)
                use = use._next_use
        for old, new in zip(op.results, new_results, strict=True):
            if new is None:
                old.erase(safe_erase=safe_erase)
            else:
                old.replace_all_uses_with(new)  # also passes the name on
        if made and len(new_results) == 1 and (only := new_results[0]) is not None:
            name = only.name_hint
            for result in (result for new_op in made for result in new_op.results):
                if result.name_hint is None:
                    result.name_hint = name
        self.erase(op, safe_erase=safe_erase)

    def inline_block(self, block: Block, insertion_point: InsertPoint, arg_values: Sequence[SSAValue] = ()) -> None:
        moved = tuple(block.ops)
        super().inline_block(block, insertion_point, arg_values)
        for op in reversed(moved):
            self._push(op)

    def _push(self, op: Operation) -> None:
        self.worklist.setdefault(op)
        if op.next_op is None:
            self._push_around(op)

    def _push_around(self, op: Operation) -> None:
        """Visits the op around `op` again: patterns of a branch or loop depend on yielded values and on empty blocks."""
        if (parent := op.parent_op()) is not None and parent is not self.root:
            self.worklist.setdefault(parent)

    def _inserted(self, op: Operation) -> None:
        locate(op, self.location)
        if op.regions:
            for inner in op.walk(reverse=True, region_first=True):
                adopt(inner)
                self._push(inner)
        else:
            adopt(op)
            self._push(op)

    def _removed(self, op: Operation) -> None:
        for operand in operands_of(op):
            if (maker := op_of(operand)) is not None:
                self._push(maker)
                self._push_last_users(op, operand)
        if op.parent is not None and op.parent.first_op is op:
            self._push_around(op)
        if (after := op.next_op) is not None and after.regions:
            self.worklist.setdefault(after)
        if op.regions:
            for inner in op.walk():
                self.worklist.pop(inner, None)
        else:
            self.worklist.pop(op, None)

    def _push_last_users(self, op: Operation, operand: SSAValue) -> None:
        """Visits the only other op that uses `operand`, which `op` gives up."""
        user: Operation | None = None
        use = operand.first_use
        while use is not None:
            other = use._operation
            if other is not op and other is not user:
                if user is not None:
                    return
                user = other
            use = use._next_use
        if user is not None:
            self.worklist.setdefault(user)


class _Folding(NamedTuple):
    """Cached folding properties of an op type."""

    is_constant: bool
    is_commutative: bool
    has_folder: bool


@cache
def _folding_of(op_type: type[Operation]) -> _Folding:
    return _Folding(is_constant_type(op_type), is_commutative_type(op_type), has_folder(op_type))


_NOT_FOLDED = _Folding(is_constant=False, is_commutative=False, has_folder=False)


class _GreedyDriver:
    def __init__(
        self,
        root: Operation,
        patterns_of: Callable[[type[Operation]], Sequence[RewritePattern]],
        fold: bool,
        ctx: Context | None,
        begin_with: Container[type[Operation]] | None,
    ) -> None:
        self.root = root
        self.patterns_of = patterns_of
        self.visits: dict[type[Operation], tuple[_Folding, Sequence[RewritePattern]]] = {}
        self.fold = fold
        self.ctx = ctx
        self.begin_with = begin_with
        self.constants = ConstantPool(numbers_of(root))
        self.worklist: Worklist = {}
        self.rewriter = LocatedRewriter(self.worklist, root)
        self.budget = 0
        self.must_walk_again = False
        self.record = record_wanted()
        self.by: RewritePattern | str = ""  # what rewrote the last op that was rewritten

    def run(self) -> bool:
        changed = False
        for _ in range(MAX_ROUNDS):
            ops, wanted = walk(self.root, reverse=True, region_first=True), self.begin_with
            self.worklist.update(dict.fromkeys(ops if wanted is None else [op for op in ops if type(op) in wanted]))
            self.worklist.pop(self.root, None)
            self.budget = max(self.budget, MAX_REWRITES_PER_OP * (len(self.worklist) + 1))
            if not self._drain():
                return changed
            changed = True
            if not self.must_walk_again:
                return True
            self.must_walk_again = False
        return changed

    def _drain(self) -> bool:
        changed = False
        worklist, rewrite = self.worklist, self._rewrite if self.record is None else self._recorded
        while worklist:
            op, _ = worklist.popitem()
            has_regions = bool(op.regions)
            if not rewrite(op):
                continue
            changed = True
            if has_regions:
                self.must_walk_again = True
            self.budget -= 1
            if self.budget < 0:
                raise InternalError(
                    f"patterns undo each other around '{op.name}'",
                    stage="rewrite",
                    details=(place_of(op),) if place_of(op) else (),
                )
        return changed

    def _visit_of(self, op_type: type[Operation]) -> tuple[_Folding, Sequence[RewritePattern]]:
        """The folders and patterns for ops of one type: looked up once, not for each op."""
        folding = _folding_of(op_type) if self.fold else _NOT_FOLDED
        found = self.visits[op_type] = folding, self.patterns_of(op_type)
        return found

    def _rewrite(self, op: Operation) -> bool:
        """Erases, folds or rewrites `op`, once; returns whether it did."""
        if op.parent is None:
            return False  # a pattern removed it without the rewriter
        rewriter = self.rewriter
        folding, patterns = self.visits.get(type(op)) or self._visit_of(type(op))
        if self.fold:
            if is_dead(op):
                self.by = "dead code"
                rewriter.erase(op)
                return True
            if folding.is_constant:
                self.by = "constant to the entry"
                return not op.attributes and self._move_to_entry(op)
            moved = folding.is_commutative and constant_to_the_right(op)
            if folding.has_folder and (values := fold_op(op, self.constants, self.ctx)) is not None:
                self.by = "fold"
                rewriter.start(op)
                rewriter.replace(op, (), values)
                return True
            if moved:
                self.by = "constant to the right"
                return True
        if not patterns:
            return False
        rewriter.start(op)
        for pattern in patterns:
            pattern.match_and_rewrite(op, rewriter)
            if rewriter.has_done_action:
                self.by = pattern
                return True
        return False

    def _recorded(self, op: Operation) -> bool:
        """`_rewrite`, for a record of each rewrite."""
        assert self.record is not None
        self.record.match(op)
        if not self._rewrite(op):
            self.record.end(None)
            return False
        self.record.end(self.by if isinstance(self.by, str) else type(self.by).__name__)
        return True

    def _move_to_entry(self, constant: Operation) -> bool:
        """Keeps one copy of `constant` at its function's entry; returns whether it replaced `constant` by an earlier copy."""
        kept = self.constants.unique(constant, entry_block(constant))
        if kept is constant:
            return False
        self.rewriter.start(constant)
        self.rewriter.replace(constant, (), kept.results)
        return True
