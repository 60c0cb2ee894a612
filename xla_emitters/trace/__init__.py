"""What one compilation did, and every way of looking at it. Plain Python: a trace is read back where there is neither xDSL nor LLVM.

records   Trace, Step, Remark, Decision: the one recorded structure, and its JSON
text      dumps, numbered files, tables of times, diffs
explain   why this code: emitter, launch, partition, accesses, and what passes declined
html      IR side by side with the HLO, each op with the instruction that it comes from
lexers    colours for HLO and MLIR text, for Pygments
"""

from xla_emitters.trace.records import SCHEMA, Decision, Remark, Step, Trace

__all__ = ["SCHEMA", "Decision", "Remark", "Step", "Trace"]
