"""The instructions of a thread by class, and the cycles that the pipes of a multiprocessor need for a warp of them.

    {"FFMA": 12, "MUFU.EX2": 4, "LDG.E.128.CONSTANT": 1}  ->  {"f32": 12, "special": 4, "global": 1}
                                                          ->  pipe "special": 4 * 32 lanes / 16 lanes a cycle = 8 cycles a warp

Every instruction occupies one of the four schedulers for a cycle, and its pipe for as long as that needs for 32 lanes. Branches, moves of
constants and the uniform datapath have no pipe here: they are never the bottleneck. Multiplications of integers, IMAD and IMUL, which ptxas
also takes for additions, shifts and moves, run on the pipes of f32 multiplications, of which only some can ("heavy").
Source: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions"; CUDA Binary Utilities, "Instruction Set Reference"; of
IMAD: Nsight Compute's Profiling Guide, "Pipelines", and NVIDIA in forums.developer.nvidia.com/t/302018: "FMAheavy pipe handles IMAD, IDP,
and FP32 operations; FMAlite pipe handles FP32 ... On GH100: same".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from xla_emitters.device import Multiprocessor

WARP = 32
SCHEDULERS = "schedulers"
"""The pipe of all instructions."""


@dataclass(frozen=True)
class OpcodeClass:
    """A class of opcodes, with its name in the report.

    pipe        fields of `Multiprocessor`, with spaces between: the pipes that they occupy, by their rates; "" if no pipe limits them
    operations  floating-point operations of one instruction in one thread
    """

    name: str
    pipe: str
    opcodes: str
    operations: int = 0


CLASSES = (
    OpcodeClass("f32", "fp32", "FADD FMUL FADD32I FMUL32I", 1),
    OpcodeClass("f32", "fp32", "FFMA FFMA32I", 2),
    OpcodeClass("f32", "fp32", "FADD2 FMUL2", 2),
    OpcodeClass("f32", "fp32", "FFMA2", 4),
    OpcodeClass("f32", "alu", "FSETP FSEL FMNMX FMNMX3 FSET FCHK FSWZADD"),
    OpcodeClass("f16", "fp16", "HADD2 HMUL2 HADD2_32I HMUL2_32I", 2),
    OpcodeClass("f16", "fp16", "HFMA2 HFMA2_32I", 4),
    OpcodeClass("f16", "fp16", "HSETP2 HMNMX2 HSET2"),
    OpcodeClass("f64", "fp64", "DADD DMUL", 1),
    OpcodeClass("f64", "fp64", "DFMA", 2),
    OpcodeClass("f64", "fp64", "DSETP DMNMX DSET"),
    OpcodeClass("special", "special", "MUFU", 1),
    OpcodeClass("convert", "special", "F2F F2I I2F FRND"),
    OpcodeClass("convert", "fp16", "HADD2_CONVERT"),
    OpcodeClass("convert", "alu", "F2FP I2FP I2I I2IP F2IP"),
    OpcodeClass("integer", "alu", "IADD IADD3 LEA SHF SHL SHR LOP3 ISETP SEL PRMT IMNMX IMNMX3 VIADD VIADDMNMX"),
    OpcodeClass("integer", "alu", "VIMNMX VIMNMX3 IABS BMSK SGXT ISCADD LOP IADD32I LOP32I VABSDIFF P2R R2P"),
    OpcodeClass("integer", "fp32 heavy", "IMAD IMUL IMUL32I IDP"),
    OpcodeClass("integer", "special", "POPC FLO BREV"),
    OpcodeClass("global", "load_store", "LDG STG"),
    OpcodeClass("atomic", "load_store", "ATOM ATOMG RED REDG"),
    OpcodeClass("shared", "load_store", "LDS STS LDSM STSM ATOMS"),
    OpcodeClass("local", "load_store", "LDL STL LD ST"),
    OpcodeClass("exchange", "load_store", "SHFL MATCH REDUX VOTE VOTEU"),
    OpcodeClass("control", "", "BRA BRX JMP EXIT CALL RET BSSY BSYNC BREAK BMOV WARPSYNC YIELD NANOSLEEP KILL"),
    OpcodeClass("other", "fp16", "HFMA2_MOVE"),
    OpcodeClass("barrier", "", "BAR MEMBAR ERRBAR DEPBAR CCTL FENCE"),
)
"""In the order of the report. Opcodes that are not listed (moves, constants, the uniform datapath) are "other".

Our kernels know for each pointer whether it is global or shared; generic accesses, LD and ST, access arrays on the stack.
"""

_BY_OPCODE = {opcode: row for row in CLASSES for opcode in row.opcodes.split()}
_OTHER = OpcodeClass("other", "", "")


def class_of(opcode: str) -> OpcodeClass:
    """
    >>> class_of("LDG.E.128.CONSTANT").name, class_of("ULDC.64").name
    ('global', 'other')
    """
    return _BY_OPCODE.get(opcode.partition(".")[0], _OTHER)


def by_class(opcodes: Mapping[str, int]) -> dict[str, int]:
    """Class -> number of instructions, for classes that occur, in the order of `CLASSES`, "other" last."""
    counts = Counter[str]()
    for opcode, count in opcodes.items():
        counts[class_of(opcode).name] += count
    names = dict.fromkeys(row.name for row in (*CLASSES, _OTHER))
    return {name: counts[name] for name in names if counts[name]}


def operations(opcodes: Mapping[str, int]) -> int:
    """Floating-point operations: an addition or multiplication counts one, a fused one two; on two packed halves, twice as many."""
    return sum(class_of(opcode).operations * count for opcode, count in opcodes.items())


def issue_cycles(opcodes: Mapping[str, int], unit: Multiprocessor) -> dict[str, float]:
    """Pipe -> cycles that a multiprocessor needs for one warp.

    Each memory access counts once here; `traffic` adds the cost of its sectors and bank conflicts.

    >>> from xla_emitters.device import device
    >>> issue_cycles({"FFMA": 12, "MUFU.EX2": 4}, device("h200").multiprocessor)
    {'schedulers': 4.0, 'fp32': 3.0, 'special': 8.0}
    """
    cycles = {SCHEDULERS: sum(opcodes.values()) / unit.schedulers}
    for opcode, count in opcodes.items():
        for pipe in class_of(opcode).pipe.split():
            cycles[pipe] = cycles.get(pipe, 0.0) + count * WARP / getattr(unit, pipe)
    return cycles
