"""Attributes of functions, parameters and calls in the LLVM dialect, in LLVM IR's spelling.

    {llvm.noalias, llvm.align = 16 : index}                  noalias align 16                 of a parameter, a result, a call's argument
    nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>        ptx_kernel ... "nvvm.reqntid"="128,1,1"    of a function
    memory_effects = #llvm.memory_effects<argMem = read...>  memory(argmem: read)

Attributes of other dialects (`xla.`, `gpu.`) have no meaning for LLVM and are left out, as by mlir-translate. An `llvm.` attribute of a
parameter that is in no table is refused: dropping a promise is safe, dropping a convention such as `byval` is not.
Source: MLIR 22, `ModuleTranslation::convertParameterAttrs`, `NVVMToLLVMIRTranslation`; LLVM language reference, "Parameter Attributes".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i1,
)
from xdsl.ir import Attribute

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import llvm
from xla_emitters.dialects.mlir.llvm.metadata import MemoryEffectsAttr
from xla_emitters.errors import Unsupported
from xla_emitters.lowering.llvm_ir.spelling import STAGE, escaped, type_text

_WORDS = {
    **{f"llvm.{word}": word for word in ("allocalign", "allocptr", "immarg", "inreg", "nest", "noalias", "nofree")},
    **{f"llvm.{word}": word for word in ("nonnull", "noundef", "readnone", "readonly", "returned", "signext")},
    **{f"llvm.{word}": word for word in ("writable", "writeonly", "zeroext")},
    "llvm.nocapture": "captures(none)",
    "nvvm.grid_constant": '"nvvm.grid_constant"',
}
_NUMBERS = {
    "llvm.align": "align {}",
    "llvm.dereferenceable": "dereferenceable({})",
    "llvm.dereferenceable_or_null": "dereferenceable_or_null({})",
}
_TYPES = {f"llvm.{word}": word for word in ("byref", "byval", "elementtype", "inalloca", "preallocated", "sret")}

# For functions: property -> word.
_FUNCTION_WORDS = {
    "always_inline": "alwaysinline",
    "convergent": "convergent",
    "inline_hint": "inlinehint",
    "no_inline": "noinline",
    "no_unwind": "nounwind",
    "optimize_none": "optnone",
    "will_return": "willreturn",
}
# Property -> key of a string attribute.
_FUNCTION_KEYS = {
    "denormal_fp_math": "denormal-fp-math",
    "denormal_fp_math_f32": "denormal-fp-math-f32",
    "fp_contract": "fp-contract",
    "no_infs_fp_math": "no-infs-fp-math",
    "no_nans_fp_math": "no-nans-fp-math",
    "no_signed_zeros_fp_math": "no-signed-zeros-fp-math",
    "prefer_vector_width": "prefer-vector-width",
    "reciprocal_estimates": "reciprocal-estimates",
}
_LAUNCH = (
    "nvvm.reqntid",
    "nvvm.maxntid",
    "nvvm.cluster_dim",
    "nvvm.minctasm",
    "nvvm.maxnreg",
    "nvvm.cluster_max_blocks",
)
_MEMORIES = {
    "argMem": "argmem",
    "inaccessibleMem": "inaccessiblemem",
    "errnoMem": "errnomem",
    "targetMem0": "target_mem0",
    "targetMem1": "target_mem1",
}

FUNCTION_PROPERTIES = frozenset((*_FUNCTION_WORDS, *_FUNCTION_KEYS, "memory_effects", "passthrough"))
"""The properties of `llvm.func` that `function_attributes` reads."""


def parameter_attributes(dictionary: DictionaryAttr | None) -> str:
    """`noalias align 16 `: each word followed by a space; "" for none. raises Unsupported for an `llvm.` attribute in no table."""
    if dictionary is None:
        return ""
    return "".join(f"{word} " for name, value in dictionary.data.items() if (word := _parameter_word(name, value)))


def _parameter_word(name: str, value: Attribute) -> str:
    if name in _WORDS:
        return _WORDS[name]
    if name in _NUMBERS and isa(value, IntegerAttr):
        # 0 dereferenceable bytes (an array without elements) promise nothing, and LLVM IR cannot express them.
        return _NUMBERS[name].format(number) if (number := value.value.data) else ""
    if name in _TYPES:
        return f"{_TYPES[name]}({type_text(value)})"
    if name == "llvm.range" and isinstance(value, llvm.ConstantRangeAttr):
        return range_word(value)
    if name.startswith("llvm."):
        raise Unsupported(f"no LLVM IR for the parameter attribute {name} = {value}", stage=STAGE)
    return ""


def range_word(interval: llvm.ConstantRangeAttr) -> str:
    """`range(i32 0, 128)`"""
    return f"range({type_text(interval.lower.type)} {interval.lower.value.data}, {interval.upper.value.data})"


def of_each(dictionaries: ArrayAttr[DictionaryAttr] | None, count: int) -> list[DictionaryAttr | None]:
    """The dictionary of each of `count` parameters; None if it has none."""
    return [None] * count if dictionaries is None else list(dictionaries)


def function_attributes(op: llvm.FuncOp) -> str:
    """` nounwind "nvvm.reqntid"="128,1,1"`: each preceded by a space; "" for none."""
    return "".join(f" {word}" for word in _function_words(op.properties, op.attributes))


def _function_words(properties: Mapping[str, Attribute], attributes: Mapping[str, Attribute]) -> Iterator[str]:
    yield from (word for name, word in _FUNCTION_WORDS.items() if name in properties)
    if isinstance(effects := properties.get("memory_effects"), MemoryEffectsAttr):
        yield memory_word(effects)
    for name, key in _FUNCTION_KEYS.items():
        if (value := properties.get(name)) is not None:
            yield _pair(key, _plain(value))
    if isa(passed := properties.get("passthrough"), ArrayAttr):
        for one in passed:
            if isinstance(one, StringAttr):
                yield one.data
            elif isa(one, ArrayAttr[StringAttr]):
                yield _pair(*(part.data for part in one))
    for name in _LAUNCH:
        if (value := attributes.get(name)) is not None:
            yield _pair(name, _plain(value))
    if "nvvm.blocksareclusters" in attributes:
        yield '"nvvm.blocksareclusters"'


def _pair(key: str, value: str = "") -> str:
    return f'"{escaped(key.encode())}"="{escaped(value.encode())}"'


def _plain(value: Attribute) -> str:
    """A value inside a string attribute: `128,1,1`, `true`, `ieee`."""
    match value:
        case DenseArrayBase() if isa(value, DenseArrayBase[IntegerType]):
            return ",".join(map(str, value.get_values()))
        case IntegerAttr() if value.type == i1:
            return "true" if value.value.data else "false"
        case IntegerAttr():
            return str(value.value.data)
        case StringAttr():
            return value.data
        case UnitAttr():
            return ""
        case _:
            raise Unsupported(f"no LLVM IR for the function attribute {value}", stage=STAGE)


def memory_word(effects: Attribute) -> str:
    """`memory(argmem: read, inaccessiblemem: readwrite)`"""
    assert isinstance(effects, MemoryEffectsAttr)
    found: dict[str, str] = {
        name: value.data for name, value in effects.parameters_by_name.data.items() if isinstance(value, StringAttr)
    }
    default = found.get("other", "readwrite")
    parts = [word for word in (default,) if word != "none"]
    parts += [f"{_MEMORIES[name]}: {word}" for name, word in found.items() if name in _MEMORIES and word != default]
    return f"memory({', '.join(parts) or 'none'})"
