"""The `library` function that computes an op of HLO, and its configuration.

    %d = dot(%x, %y), lhs_contracting_dims={1}, ...                          gemm  {"operands": ["lhs", "rhs"], "lhs_contracting": [1] ...}
    %g = custom-call(%x, %y), custom_call_target="__cublas$lt$matmul",       gemm  {..., "epilogue": "BIAS_RELU", "beta": 1.0}
         backend_config={"gemm_backend_config": {...}}
    %s = sort(%k, %v), dimensions={0}, to_apply=%less                        sort  {"dimension": 0, "keys": [...]}

A configuration is plain data. `types` names the operands' element types; `outputs`, for functions with different kinds of results, the
role of each array of the result, in order. An op without a library function is refused by name, with its place.
Source: what XLA:GPU prints (jaxlib 0.10.2, `docs/reference/1` 6.8); NVIDIA's cuBLAS and cuDNN documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerAttr

from xla_emitters.dialects.hlo.backend_configs import is_marker
from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.comparators import keys_of
from xla_emitters.dialects.hlo.computation import ComputationOp, ParameterOp, enclosing_module, find_computation
from xla_emitters.dialects.hlo.contractions import ConvolutionOp, DotOp
from xla_emitters.dialects.hlo.custom_calls import (
    TAKE_THE_REST,
    Config,
    custom_call,
    dot_config,
    precision_asked,
    window_config,
)
from xla_emitters.dialects.hlo.device_groups import device_counts, groups_of, pairs_of
from xla_emitters.dialects.hlo.permuted_slices import is_sliced, sliced_bytes, slices_of
from xla_emitters.dialects.hlo.rule_ops import RuleOp, is_wait
from xla_emitters.dialects.hlo.types import element_of, is_array, leaf_types, tuple_types
from xla_emitters.library.arguments import top_key
from xla_emitters.library.devices import channel_named

_COMMUNICATION = (
    (
        {"all", "collective", "partition", "replica", "reduce-scatter"},
        "it needs the other devices that a program runs on; programs for several devices have no unknown sizes",
    ),
    ({"infeed", "outfeed", "send", "recv"}, "it exchanges data with the host or another program"),
)
"""Words in opcodes of ops that a program with unknown sizes does not take, and the reason."""

_REPLACED = frozenset(
    {"ragged-dot", "scaled-dot", "scan", "select-and-scatter"}
    | {"batch-norm-training", "batch-norm-inference", "batch-norm-grad"}
)
"""Opcodes of HLO before optimization only."""

TextOf: TypeAlias = Callable[[ComputationOp], str]
"""Function that returns how a computation is named to its evaluator: by its name, or as HLO text."""


def name_of(computation: ComputationOp) -> str:
    """A computation's name."""
    return computation.sym_name.data


def communication(op: HloOp) -> str:
    """Why no library here computes an op that exchanges data; "" for other ops."""
    parts = {op.opcode, *op.opcode.split("-")}
    return next((reason for words, reason in _COMMUNICATION if words & parts), "")


def is_library_call(op: HloOp) -> bool:
    """Whether libraries compute `op`: by its opcode, or a custom call that is not a marker."""
    if op.opcode == "custom-call":
        return not is_marker(op)
    return isinstance(op, DotOp | ConvolutionOp) or op.opcode in _BY_OPCODE or is_collective(op)


def is_collective(op: HloOp) -> bool:
    """Whether `op` needs the other devices of a run, or its own number among them."""
    return op.opcode.removesuffix("-start") in (*_COLLECTIVES, *_TRANSFERS, "partition-id", "replica-id")


def library_call_of(op: HloOp, text_of: TextOf = name_of) -> tuple[str, Config]:
    """The name of the library function that computes `op`, and its configuration. A marker passes its operand through.

    text_of  returns the text for a sort's comparator without keys
    raises   Unsupported, with the op's place, for an op that no library function computes; VerifyError for a broken configuration
    """
    if is_wait(op):
        return "wait", {}
    name, config = _found(op, text_of)
    if op.opcode in _TRANSFERS:
        return name, config
    operands = [leaf for operand in op.operands for leaf in leaf_types(operand.type)]
    if not all(is_array(ir_type) for ir_type in (*operands, *leaf_types(op.result.type))):
        raise op.unsupported("no library function with operands or results that are not arrays")
    return name, {"types": [element_of(operand).name for operand in operands], **config}


def is_evaluated_by_library(op: HloOp) -> bool:
    """Whether `evaluate` of the op is a call of its library function, with a configuration that does not depend on the operands."""
    return op.opcode in _BY_OPCODE


def _found(op: HloOp, text_of: TextOf) -> tuple[str, Config]:
    match op:
        case DotOp():
            return "gemm", _dot(op)
        case ConvolutionOp():
            return "convolution", _convolution(op)
        case RuleOp() if op.opcode == "custom-call":
            return custom_call(op)
        case RuleOp() if op.opcode == "sort":
            return "sort", _sort(op, text_of)
        case RuleOp() if op.opcode.removesuffix("-start") in _COLLECTIVES:
            return _collective(op, text_of)
        case RuleOp() if op.opcode in _TRANSFERS:
            return _TRANSFERS[op.opcode], _transfer(op)
        case RuleOp() if op.opcode in _BY_OPCODE:
            name, configured = _BY_OPCODE[op.opcode]
            return name, configured(op)
        case _:
            optimizer = "XLA's optimizer replaces it: `xla-emitters optimize FILE`" if op.opcode in _REPLACED else ""
            reasons = [reason for reason in (communication(op), optimizer, TAKE_THE_REST) if reason]
            raise op.unsupported("no library function", help="; ".join(reasons))


# ---------------------------------------------------------------------------------------------------------- configurations


def _dot(op: DotOp) -> Config:
    # Refuses unsupported types.
    _ = op.held
    algorithm = "unset" if op.algorithm is None else op.algorithm.data
    return {
        "operands": ["lhs", "rhs"],
        "outputs": ["d"],
        **dot_config(op.pairing),
        "alpha": [1, 0],
        "beta": 0,
        "epilogue": "DEFAULT",
        "rounds": op.rounds_to,
        "precision": precision_asked("" if op.operand_precision is None else op.operand_precision.data, algorithm),
    }


def _convolution(op: ConvolutionOp) -> Config:
    _ = op.held
    return {
        "operands": ["image", "kernel"],
        "outputs": ["result"],
        "kind": "forward",
        "labels": op.labels,
        "window": window_config(op),
        "feature_groups": op.feature_groups,
        "batch_groups": op.batch_groups,
        "scale": 1,
        "side_scale": 0,
        "activation": "none",
        "slope": 0,
        "precision": precision_asked("" if op.operand_precision is None else op.operand_precision.data),
    }


def _sort(op: RuleOp, text_of: TextOf) -> Config:
    comparator = find_computation(op, op.symbols("to_apply")[0])
    keys = keys_of(comparator)
    return {
        "dimension": op.numbers("dimensions")[0],
        "keys": keys,
        "comparator": text_of(comparator) if keys is None else None,
    }


def _triangular_solve(op: RuleOp) -> Config:
    return {
        "outputs": ["solution"],
        "left_side": bool(op.number("left_side")),
        "lower": bool(op.number("lower")),
        "unit_diagonal": bool(op.number("unit_diagonal")),
        "transpose_a": op.word("transpose_a") or "NO_TRANSPOSE",
    }


_COLLECTIVES: Mapping[str, str] = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "ragged-all-to-all": "ragged_all_to_all",
    "collective-broadcast": "collective_broadcast",
    "collective-permute": "collective_permute",
}
"""Opcode, without -start -> library function."""


_TRANSFERS: Mapping[str, str] = {"send": "send", "recv-done": "receive"}
"""Opcode -> library function. A receive is done where the program waits for it."""


def _transfer(op: RuleOp) -> Config:
    start = op if op.opcode == "send" else op.operands[0].owner
    if not isinstance(start, RuleOp) or start.number("is_host_transfer"):
        raise op.unsupported("no library function", help="it exchanges data with the host or another program")
    if not (pairs := pairs_of(start)):
        raise op.unsupported(
            "no library function",
            help="which devices send to which is said by frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}",
        )
    sent = start.operands[0].type if start is op else tuple_types(start.result.type)[0]
    return {
        "types": [element_of(sent).name],
        "instruction": op.instruction_name.data,
        "channel": channel_named(start.number("channel_id")),
        "pairs": [list(pair) for pair in pairs],
    }


def _collective(op: RuleOp, text_of: TextOf) -> tuple[str, Config]:
    opcode = op.opcode.removesuffix("-start")
    config: Config = {"instruction": op.instruction_name.data, "groups": [list(group) for group in groups_of(op)]}
    if "to_apply" in op.properties:
        computation = find_computation(op, op.symbols("to_apply")[0])
        config |= {"computation": text_of(computation), "reduction": _reduction(computation)}
    if opcode in ("all-gather", "reduce-scatter", "all-to-all"):
        dimensions = op.numbers("dimensions")
        config |= {"dimension": dimensions[0] if dimensions else None}
    if opcode == "collective-permute":
        config |= {"pairs": [list(pair) for pair in pairs_of(op)]}
    if is_sliced(op):
        config |= {
            "slices": [[list(sizes) for sizes in each] for each in slices_of(op)],
            "sliced_bytes": sliced_bytes(op),
        }
    return _COLLECTIVES[opcode], config


def _reduction(computation: ComputationOp) -> str | None:
    """The opcode of a computation that is one op of its two parameters; else None."""
    root = computation.root.owner
    if not isinstance(root, HloOp) or len(set(root.operands)) != 2:
        return None
    return root.opcode if all(isinstance(operand.owner, ParameterOp) for operand in root.operands) else None


def _device_id(op: RuleOp) -> Config:
    replicas, partitions = device_counts(op)
    of = op.opcode.removesuffix("-id")
    return {"instruction": op.instruction_name.data, "of": of, "replicas": replicas, "partitions": partitions}


def _random_numbers(op: RuleOp) -> Config:
    seed = said.value.data if isinstance(said := op.attributes.get(RANDOM_SEED), IntegerAttr) else 0
    return {"distribution": op.word("distribution").removeprefix("rng_"), "start": numbers_before(op), "seed": seed}


RANDOM_SEED = "disc.random_seed"
"""Attribute of `rng`: the seed that was asked for; without it, 0."""
NUMBERS_BEFORE = "disc.numbers_before"
"""Attribute of an op with a hidden state: the result of `numbers_before` before any op was moved."""


def numbers_before(op: HloOp) -> int:
    """How many random numbers the module's ops with a hidden state take before `op`: its attribute, or counted in text order."""
    if isinstance(said := op.attributes.get(NUMBERS_BEFORE), IntegerAttr):
        return said.value.data
    module, taken = enclosing_module(op), 0
    for other in () if module is None else module.walk():
        if other is op:
            break
        if isinstance(other, HloOp) and other.opcode in ("rng", "dynamic-rng"):
            taken += 1 << 32
        elif isinstance(other, RuleOp) and other.opcode == "rng-get-and-update-state":
            taken += other.number("delta")
    return taken


_BY_OPCODE: Mapping[str, tuple[str, Callable[[RuleOp], Config]]] = {
    "sort": ("sort", lambda op: _sort(op, name_of)),
    "topk": ("top_k", lambda op: {"keys": [top_key(largest=bool(op.number("largest", 1)))]}),
    "fft": ("fft", lambda op: {"kind": op.word("fft_type"), "length": list(op.numbers("fft_length"))}),
    "cholesky": ("cholesky", lambda op: {"outputs": ["factor"], "lower": bool(op.number("lower"))}),
    "triangular-solve": ("triangular_solve", _triangular_solve),
    "rng-bit-generator": (
        "random_bits",
        lambda op: {"algorithm": "threefry" if op.word("algorithm") == "rng_three_fry" else "philox"},
    ),
    "rng": ("random_numbers", _random_numbers),
    "rng-get-and-update-state": ("random_state", lambda op: {"start": numbers_before(op)}),
    "partition-id": ("device_id", _device_id),
    "replica-id": ("device_id", _device_id),
}
