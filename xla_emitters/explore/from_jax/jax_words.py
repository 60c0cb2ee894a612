"""Errors about JAX functions in the words of their callers: callbacks, static arguments, trees, symbolic sizes. Does not import JAX.

    layer.py:12:5: error: [jax] jax.debug.print calls Python on the host: a program runs on the GPU alone
    error: [jax] f needs the value of 'n' while it is traced
        help: make the argument static: from_jax(jax.jit(f, static_argnames="n"), ...)
    error: [jax] f: arguments[0]['b'] is missing

JAX's own errors about a function's shapes and types are not changed: their tracebacks lead to the line of the function.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from xla_emitters.errors import DataError, Place, Unsupported, UsageError

STAGE = "jax"
_CALLBACKS = {
    "debug_print": "jax.debug.print",
    "debug_callback": "jax.debug.callback or jax.debug.print",
    "pure_callback": "jax.pure_callback",
    "io_callback": "jax.experimental.io_callback",
}
"""Primitive -> what the caller wrote."""
_CALLBACK_TARGET = re.compile(r"@(xla_\w*python\w*_callback|xla_\w*callback)\b")


def refuse_callbacks(jaxpr: Any) -> None:
    """raises Unsupported with the place of the first call of Python in a jaxpr or in those inside it"""
    for equation in _equations(jaxpr):
        name = equation.primitive.name
        if name in _CALLBACKS or "callback" in name:
            raise _callback(_CALLBACKS.get(name) or str(name), _place(equation))


def refuse_callbacks_in(text: str) -> None:
    """raises Unsupported for a call of Python in a lowered module: the text does not say by which function it was written"""
    if (found := _CALLBACK_TARGET.search(text)) is not None:
        raise _callback(f"a callback (custom call {found[1]})", None)


def _callback(what: str, place: Place | None) -> Unsupported:
    return Unsupported(
        f"{what} calls Python on the host: a program runs on the GPU alone",
        stage=STAGE,
        place=place,
        help="leave it out, or return the value that it takes and use it after the call",
    )


def _equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr, closed or not, and of those in their parameters."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        for value in equation.params.values():
            parts: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, tuple | list) else (value,)
            for part in parts:
                if hasattr(getattr(part, "jaxpr", part), "eqns"):
                    yield from _equations(part)


def _place(equation: Any) -> Place | None:
    """The line of the caller's code that made an equation; None where JAX does not keep it."""
    for frame in getattr(getattr(equation.source_info, "traceback", None), "frames", ()):
        if not {"jax", "jaxlib"} & set(Path(frame.file_name).parts):
            text = linecache.getline(frame.file_name, frame.line_num).rstrip()
            indent = len(text) - len(text.lstrip())
            return Place(frame.file_name, frame.line_num, indent + 1, len(text) + 1, text)
    return None


# ----------------------------------------------------------------------------------------------------------------- tracing


_CHOICE = "; or choose by its value with jax.numpy.where or jax.lax.cond"


def tracing_error(error: Exception, name: str) -> Exception:
    """The error to raise for one that tracing a function raised: in the caller's words, or the same."""
    said = str(error)
    needed = re.search(r"depends on the values? of the arguments? ([\w, ]+)", said)
    given = re.search(r"was passed to the function at path (\w+)", said)
    if needed is not None or given is not None:
        argument = (needed or given or [""])[1].partition(",")[0].strip()
        why = f"needs the value of '{argument}' while it is traced" if needed else f"takes no array as '{argument}'"
        return UsageError(
            f"{name} {why}",
            stage=STAGE,
            details=(said.splitlines()[0],),
            help=f'make the argument static: from_jax(jax.jit(f, static_argnames="{argument}"), ...){"" if given else _CHOICE}',
        )
    if type(error).__name__ == "InconclusiveDimensionOperation":
        return Unsupported(
            f"{name} asks about a symbolic size what is not known: {said.splitlines()[0]}",
            stage=STAGE,
            help="; ".join(f'if it {when}: constraints=("{asked}",)' for when, asked in _constraints(said)),
        )
    if isinstance(error, NotImplementedError):
        return Unsupported(f"JAX does not lower {name}: {said.splitlines()[0]}", stage=STAGE)
    return error


_NEVER = {">": "<=", "<": ">=", ">=": "<", "<=": ">"}
"""What holds of two sizes where a comparison does not; JAX has no constraint for sizes that differ."""


def _constraints(said: str) -> list[tuple[str, str]]:
    """The comparison that was not decided, as constraints of JAX for both of its outcomes; none where the message has no comparison.

    >>> _constraints("Symbolic dimension comparison 'n' < '3' is inconclusive.")
    [('always holds', 'n <= 2'), ('never holds', 'n >= 3')]
    """
    if (asked := re.search(r"'([^']+)' (>=|<=|==|>|<) '([^']+)' is inconclusive", said)) is None:
        return []
    left, how, right = asked.groups()
    outcomes = [("always holds", how), *(("never holds", never) for never in [_NEVER.get(how)] if never)]
    return [(when, f"{left} {_bound(comparison, right)}") for when, comparison in outcomes]


def _bound(comparison: str, right: str) -> str:
    """JAX's constraints are >=, <= and == only: `> 3` is `>= 4`."""
    if comparison not in ("<", ">"):
        return f"{comparison} {right}"
    if right.isdecimal():
        return f"{comparison}= {int(right) + (1 if comparison == '>' else -1)}"
    return f"{comparison}= {right} {'+' if comparison == '>' else '-'} 1"


def refuse_keywords(given: Iterable[str], known: Iterable[str]) -> None:
    """raises UsageError for a keyword that is no option"""
    if unknown := sorted(set(given) - set(known)):
        raise UsageError(
            f"from_jax has no option '{unknown[0]}'",
            stage=STAGE,
            help=f"arguments of the function are positional: from_jax(functools.partial(f, {unknown[0]}=...), ...)",
        )


def shapes_error(error: Exception, shapes: Any, count: int) -> UsageError:
    """The error for `shapes` or constraints that JAX does not take, for a function of `count` arguments that are not static."""
    said = str(error).splitlines()[0]
    if "pytree structure" in said:
        listed = isinstance(shapes, tuple | list)
        texts = f"{len(cast('Sequence[Any]', shapes))} texts" if listed else "another structure"
        said = f"the function takes {count} argument{'' if count == 1 else 's'}, and shapes has {texts}"
    return UsageError(
        f"shapes={shapes!r}: {said}",
        stage=STAGE,
        help='shapes=("b, s, 32", "32, 64"): a text for each argument, None for one of known sizes; constraints=("s >= 2",)',
    )


# --------------------------------------------------------------------------------------------------------- calls and trees


def without_static(name: str, arguments: Sequence[Any], static: Mapping[int, Any], count: int) -> Sequence[Any]:
    """The arguments of a call without the static ones, which may be given as in a call of the function, or left out.

    static  position -> the value that the program was compiled for
    count   of the arguments that are not static
    raises  DataError for another value of a static argument
    """
    if len(arguments) == count or not static:
        return arguments
    for position, value in static.items():
        if position < len(arguments) and not _is_same(arguments[position], value):
            raise DataError(
                f"{name}: argument {position} is static: the program is for {value!r}, and {arguments[position]!r} was given",
                stage=STAGE,
                help="from_jax makes a program for each value",
            )
    return [argument for position, argument in enumerate(arguments) if position not in static]


def _is_same(given: Any, value: Any) -> bool:
    try:
        return bool(given == value)
    except Exception:
        return given is value


def tree_error(name: str, wanted: Sequence[str], given: Sequence[str], takes: str) -> DataError:
    """The error for a call with another tree than the function's.

    wanted, given  the paths of the leaves, `arguments[0]['a']`
    takes          the function's arguments, for a person
    """
    missing = [path for path in wanted if path not in given]
    more = [path for path in given if path not in wanted]
    said = [f"{_some(missing)} missing"] * bool(missing) + [f"{_some(more)} not taken"] * bool(more)
    return DataError(
        f"{name}: {', '.join(said) or 'the arguments are of another structure'}",
        stage=STAGE,
        details=(f"it takes {takes}",),
        help="p.run([...], donate=True) of the flat arguments" if "keywords['donate']" in more else "",
    )


def _some(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return f"{shown} {'is' if len(paths) == 1 else 'are'}"
