"""What one compilation did, and every view of it. Plain Python: a trace can be read back without xDSL and LLVM.

records   Trace, Step, Rewrite, Remark, Decision: the one recorded structure, and its JSON
text      dumps, numbered files, tables of times, diffs
explain   why this code: emitter, launch, partition, accesses, and what passes declined
html      IR side by side with the HLO, each op linked to the instruction that it comes from
lexers    colours for HLO and MLIR text, for Pygments
"""

from xla_emitters.trace.records import SCHEMA, Decision, Remark, Rewrite, Step, Trace

__all__ = ["SCHEMA", "Decision", "Remark", "Rewrite", "Step", "Trace"]
