"""Before each fusion, asks the runtime to run a kernel compiled for exactly these sizes; if there is none, the fusion runs.

    lmhlo.fusion F { ... %x ... -> %y }         %ran = lmhlo.run_hot %x, %y, %n {fusion = "F"}
                                         ->     scf.if %ran {} else { lmhlo.fusion F { ... } }

`%x` are the arrays that the fusion reads, `%y` those that it writes for others. `%n` are the other numbers that the code for fixed sizes
depends on: sizes of arrays inside of the fusion that equal none of theirs, and elements of host lists that are not the shape of a result.
Together with the shapes they are the key: equal keys, equal code. `fusion_alone` builds the program that the kernel is compiled from.

Not changed: a fusion that reads a host number other than an integer, and one that writes into memory that another of its operands aliases
(its kernel would assume that nothing aliases).
Source: docs/reference/4 5 ("Specialise on heat").
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.buffers.fusion_alone import Interface, NoInterface
from xla_emitters.dialects.lmhlo import FusionOp, RunHotOp
from xla_emitters.rewrite.kernel_pass import KernelPass


@dataclass(frozen=True)
class DiscSpecializeFusionOnHeatPass(KernelPass):
    """See the file's head."""

    name = "disc-specialize-fusion-on-heat"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for fusion in [found for found in op.walk() if isinstance(found, FusionOp)]:
            found = Interface.of(fusion)
            if isinstance(found, NoInterface):
                self.skip(fusion, found.reason)
                continue
            assert fusion.fusion_name is not None
            ask = RunHotOp(fusion.fusion_name.data, found.reads, found.writes, found.numbers(fusion))
            ask.has_run.name_hint = "ran"
            ask.location = fusion.location
            Rewriter.insert_op(ask, InsertPoint.before(fusion))
            kept = fusion.clone()
            choice = scf.IfOp(ask.has_run, [], [scf.YieldOp()], [kept, scf.YieldOp()])
            choice.location = fusion.location
            Rewriter.replace_op(fusion, choice)
