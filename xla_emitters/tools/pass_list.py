"""Parses a list of passes, in our spelling, MLIR's or XLA's, to the specs from which xDSL makes passes.

    xla-cse,xla-vectorize-loads-stores{device="a6000"}                            ours, and xDSL's
    builtin.module(func.func(xla-gpu-peel-loops),canonicalize{top-down=true})     mlir-opt's --pass-pipeline, also in XLA's log
    -xla-gpu-optimize-loops="max_unroll_factor=8" -cse                            flags of XLA's own driver: `pass_flags`

Names of the seed documents are taken too: XLA's file (flatten_tensors), BladeDISC's class (DhloCanonicalizeReductionPass).
Nesting is parsed and ignored: our passes run on the whole module. An option that MLIR's or XLA's pass has and ours lacks is accepted if
its value asks for what our pass always does; else a UsageError names it. The name of one of XLA's test pipelines expands to its passes.
Passes of XLA that would change nothing here are dropped.
Source: docs/reference/2 3.1 (names and options), MLIR's documentation of textual pass pipelines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from typing import Any

from xdsl.passes import ModulePass
from xdsl.universe import Universe
from xdsl.utils.arg_spec import ArgSpec, ParameterListType, ParameterType, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from xla_emitters.device import DEVICES, device_running
from xla_emitters.errors import UsageError
from xla_emitters.support.text_proto import parse_text_proto

# Name in MLIR or XLA -> our pass. Some of these names are also xDSL's; ours takes precedence.
MLIR_NAMES = {
    "canonicalize": "xla-canonicalize",
    "cse": "xla-cse",
    "loop-invariant-code-motion": "xla-loop-invariant-code-motion",
    "lower-affine": "xla-lower-affine",
    "convert-scf-to-cf": "xla-convert-scf-to-cf",
    "xla-gpu-lower-xla-shared": "xla-from-upstream-spelling",
}
# Name of a pass in the seed documents -> ours, where the rule in `_our_name` does not give it.
SEED_NAMES = {
    "bace-gemm": "base-gemm",
    "gpu-conv-padding-legalization": "gpu-conv-padding",
    "lower-xla-gpu-to-scf": "lower-xla-loops-to-scf",
    "merge-pointers-to-same-slice": "merge-pointers",
}
# XLA's passes that would change nothing here: our integer types are signless.
NOTHING_TO_DO = frozenset({"stablehlo-convert-to-signless"})
# XLA's pipelines for tests -> our pass with which each begins.
PIPELINES = {
    "xla-test-optimize": "xla-simplify-arith",
    "xla-gpu-test-transform-loops": "xla-lower-xla-to-scf",
    "xla-gpu-test-to-llvm": "xla-convert-pure-call-ops",
}
# Our pass -> option that only MLIR's or XLA's pass has -> the values that ask for what ours always does; None: every value does.
_CANONICALIZE = ("max-iterations", "max-num-rewrites", "region-simplify", "test-convergence", "top-down")
UPSTREAM_OPTIONS: dict[str, dict[str, tuple[ParameterType, ...] | None]] = {
    "xla-canonicalize": {**dict.fromkeys(_CANONICALIZE), "cse-between-iterations": (False,)},
    "inline": dict.fromkeys(("default-pipeline", "inlining-threshold", "max-iterations", "op-pipelines")),
    "xla-convert-scf-to-cf": {"allow-pattern-rollback": None},
    # Ours is as accurate as "improved", the most accurate of the values.
    "convert-complex-to-standard": {"complex-range": None},
    "xla-vectorize-loads-stores": {"target_type": ("gpu",)},
    "xla-lower-tensors": {"target_type": ("gpu",)},
}

_NAME = re.compile(r"\s*-{0,2}([A-Za-z0-9_][A-Za-z0-9_.-]*)\s*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9_-]*)(=)?")
_QUOTED = re.compile(r'"((?:\\.|[^"\\])*)"|\'([^\']*)\'')
_BARE = re.compile(r"[^\s{}'\"]*")
_NUMBER = re.compile(r"[-+]?\d+(\.\d*([eE][-+]?\d+)?)?")


def parse_passes(text: str) -> list[ArgSpec]:
    """The passes of `text` in order, under our names. raises UsageError that quotes the text which cannot be parsed."""
    if "[" in text:  # xDSL's `mlir-opt[...]`
        return [_ours(spec) for spec in parse_pipeline(text)]
    reader = _Reader(text)
    specs = reader.passes() if text.strip() else []
    if reader.position != len(text):
        raise reader.error("',' or the end")
    return [_ours(spec) for named in specs for spec in _expanded(named) if spec.name not in NOTHING_TO_DO]


def passes_of(
    specs: Sequence[ArgSpec], available: Mapping[str, Callable[[], type[ModulePass]]]
) -> tuple[ModulePass, ...]:
    """The passes that the specs name. raises UsageError for one that is not available, and for a wrong option."""
    try:
        for spec in specs:
            if spec.name not in available:
                near = get_close_matches(spec.name, available, n=1)
                raise UsageError(
                    f"there is no pass '{spec.name}'",
                    stage="opt",
                    help=f"did you mean '{near[0]}'?" if near else "xla-emitters-opt --help lists them",
                )
        return tuple(_made(available[spec.name](), spec) for spec in specs)
    except ArgSpecParseError as error:
        raise UsageError(str(error), stage="opt") from error


def _made(pass_type: type[ModulePass], spec: ArgSpec) -> ModulePass:
    """The pass with the options of `spec`. raises UsageError naming the option that is unknown, or has a value of another type"""
    known = {field.name: field for field in fields(pass_type) if field.init}
    given = {
        name: _truth(values) if name in known and known[name].type in (bool, "bool") else values
        for name, values in spec.normalize_parameter_names().parameters.items()
    }
    for name, values in given.items():
        for value in values:
            if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
                option = name.replace("_", "-")
                raise UsageError(f"{spec.name}: {option} cannot be '{value}', which has more than 64 bits", stage="opt")
    try:
        return pass_type.from_spec(ArgSpec(spec.name, given))
    except Exception as error:
        # xDSL raises bare Exceptions and ValueErrors that do not say which option it is.
        if type(error) is not Exception and not isinstance(error, ValueError):
            raise
        names = ", ".join(name.replace("_", "-") for name in known)
        for name, values in given.items():
            option, value = name.replace("_", "-"), " ".join(map(str, values))
            if name not in known:
                near = get_close_matches(name, known, n=1)
                help = f"did you mean '{near[0].replace('_', '-')}'?" if near else f"its options: {names or 'none'}"
                raise UsageError(f"{spec.name} has no option '{option}'", stage="opt", help=help) from error
            if not _is_taken(pass_type, ArgSpec(spec.name, {name: values})):
                raise UsageError(f"{spec.name}: {option} cannot be '{value}'", stage="opt") from error
        raise UsageError(f"{spec.name}: {error}", stage="opt") from error


def _is_taken(pass_type: type[ModulePass], spec: ArgSpec) -> bool:
    try:
        pass_type.from_spec(spec)
    except Exception:
        return False
    return True


def _truth(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A flag's value; as for MLIR, a flag without one is true, and so is 1."""
    return (True,) if values in ((), (1,)) else (False,) if values == (0,) else values


def pipeline_of(text: str) -> tuple[ModulePass, ...]:
    """The passes of a list: ours, those of plugins, and xDSL's. raises as `parse_passes` and `passes_of`"""
    return passes_of(parse_passes(text.strip()), available())


@cache
def multiverse() -> Universe:
    """The passes and targets of the packages that are installed; xDSL's own driver looks for them twice, 5 ms each time."""
    return Universe.get_multiverse()


def available() -> dict[str, Callable[[], type[ModulePass]]]:
    """The passes of xDSL and of other packages, ours, and those of plugins."""
    from xla_emitters.universe import all_passes

    return dict(multiverse().all_passes) | all_passes()


def options_of(text: str) -> tuple[tuple[str, str, Any], ...]:
    """(pass, field, value) for each option in a list of passes. raises as `pipeline_of`; UsageError for a pass without options"""
    found = list[tuple[str, str, Any]]()
    for spec in parse_passes(text.strip()):
        (made,) = passes_of([spec], available())
        if not spec.parameters:
            raise UsageError(
                f"'{spec.name}' is given without an option", stage="usage", help=f"{spec.name}{{option=value}}"
            )
        found += [(made.name, name, getattr(made, name)) for name in spec.normalize_parameter_names().parameters]
    return tuple(found)


def pass_flags(words: Sequence[str], is_pass: Callable[[str], bool]) -> list[str]:
    """The command line `words`; its pass flags (`-cse`, `--xla-x="a=1 b=2"`) become one `-p` in the place of the first."""
    rest, passes = list[str](), list[str]()
    place: int | None = None
    for word in words:
        name, equals, options = word.lstrip("-").partition("=")
        if word.startswith("-") and is_pass(name):
            passes.append(f"{name}{{{options}}}" if equals else name)
            place = len(rest) if place is None else place
        else:
            rest.append(word)
    return rest if place is None else [*rest[:place], "-p", ",".join(passes), *rest[place:]]


def _expanded(spec: ArgSpec) -> Iterable[ArgSpec]:
    """The passes of one of XLA's test pipelines; else `spec` itself."""
    if spec.name not in PIPELINES:
        return (spec,)
    from xla_emitters.pipelines.options import CompileOptions
    from xla_emitters.pipelines.passes import KERNEL  # imported here: it loads the whole compiler

    passes = [row.make(CompileOptions()).spec() for row in KERNEL]
    starts = [[made.name for made in passes].index(first) for first in PIPELINES.values()] + [len(passes)]
    number = list(PIPELINES).index(spec.name)
    return passes[starts[number] : starts[number + 1]]


def _ours(spec: ArgSpec) -> ArgSpec:
    """`spec` under our pass's name, with only the options that our pass has. raises UsageError for a value it does not support."""
    name = _our_name(spec.name)
    known = {option.replace("-", "_"): values for option, values in UPSTREAM_OPTIONS.get(name, {}).items()}
    kept: dict[str, ParameterListType] = {}
    for option, values in spec.normalize_parameter_names().parameters.items():
        if option == "gpu_device_info":
            if values:
                kept["device"] = (_device_described(str(values[0])),)
        elif option not in known:
            kept[option] = values
        elif (wanted := known[option]) is not None and values and values[0] not in wanted:
            raise UsageError(
                f"{spec.name} does not support {option}={values[0]}",
                stage="opt",
                help=f"it supports {option}={wanted[0]}",
            )
    return ArgSpec(name, kept)


def _our_name(name: str) -> str:
    """Our name of a pass; also for MLIR's, for that of XLA's file, and for BladeDISC's in the seed document.

    >>> [_our_name(name) for name in ("cse", "flatten_tensors", "DhloCanonicalizeReductionPass", "xla-cse")]
    ['xla-cse', 'xla-flatten-tensors', 'disc-canonicalize-reduction', 'xla-cse']
    """
    if name in MLIR_NAMES:
        return MLIR_NAMES[name]
    words = _CAMEL.sub("-", name).replace("_", "-").lower()
    if words == name:
        return name
    from xla_emitters.universe import PASSES

    words = re.sub(r"^d-?hlo-|^xla-(gpu-)?|(?<=-)tao-|-v2|-pass$", "", words)
    words = SEED_NAMES.get(words, words)
    return next((full for prefix in ("xla-", "xla-gpu-", "disc-", "") if (full := prefix + words) in PASSES), name)


def _device_described(text: str) -> str:
    """The known device with the compute capability of a description in XLA's text format.

    A capability below all known ones maps to the oldest known device: no PTX is made for it, but XLA's own tests name such devices,
    and passes then decide as for the oldest.
    """
    capability = parse_text_proto(text, "gpu_device_info").child("cuda_compute_capability")
    if capability is None:
        raise UsageError(
            "gpu_device_info names no cuda_compute_capability", stage="opt", help='give it, or device="h200"'
        )
    major, minor = (capability.number(name, least=0) or 0 for name in ("major", "minor"))
    oldest = DEVICES[0]
    return (oldest if (major, minor) < oldest.compute_capability else device_running(f"sm_{major}{minor}")).name


class _Reader:
    """Reads `pass(pass,pass{option=value})`; `position` is the index of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def error(self, wanted: str) -> UsageError:
        found = self.text[self.position : self.position + 20] or "the end"
        return UsageError(f"Error parsing pass pipeline specification: wanted {wanted}, got '{found}'", stage="opt")

    def passes(self) -> list[ArgSpec]:
        """One or more passes, separated by commas; nested lists are flattened and the ops around them dropped."""
        found: list[ArgSpec] = []
        while True:
            if (name := _NAME.match(self.text, self.position)) is None:
                raise self.error("a pass")
            self.position = name.end()
            if self._skip("("):
                if not self._skip(")"):
                    found += self.passes()
                    if not self._skip(")"):
                        raise self.error("')'")
            else:
                found.append(ArgSpec(name[1], self._options() if self._skip("{") else {}))
            if not self._skip(","):
                return found

    def _skip(self, sign: str) -> bool:
        while self.text[self.position : self.position + 1].isspace():
            self.position += 1
        found = self.text.startswith(sign, self.position)
        self.position += found
        return found

    def _options(self) -> dict[str, ParameterListType]:
        options: dict[str, ParameterListType] = {}
        while not self._skip("}"):
            if (key := _KEY.match(self.text, self.position)) is None:
                raise self.error("an option or '}'")
            self.position = key.end()
            options[key[1]] = self._value() if key[2] else ()
        return options

    def _value(self) -> ParameterListType:
        if (quoted := _QUOTED.match(self.text, self.position)) is not None:
            self.position = quoted.end()
            return (quoted[1] if quoted[1] is not None else quoted[2],)
        if self.text.startswith("{", self.position):
            return (self._braced(),)
        bare = _BARE.match(self.text, self.position)
        assert bare is not None
        self.position = bare.end()
        return tuple(_parameter(word) for word in bare[0].split(",") if word)

    def _braced(self) -> str:
        """The text between a brace and the one that closes it."""
        depth = 0
        for place in range(self.position, len(self.text)):
            depth += {"{": 1, "}": -1}.get(self.text[place], 0)
            if not depth:
                start, self.position = self.position + 1, place + 1
                return self.text[start:place]
        raise self.error("a '}' that closes this '{'")


def _parameter(word: str) -> ParameterType:
    if word in ("true", "false"):
        return word == "true"
    if (number := _NUMBER.fullmatch(word)) is not None:
        return float(word) if number[1] else int(word)
    return word
