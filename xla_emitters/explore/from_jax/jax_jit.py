"""`xe.jit`: a JAX function that is compiled at its first call, and again for arguments of another shape class.

    @xe.jit                                        compiled for the shapes and types of each call
    def layer(x, w): return jax.nn.gelu(x @ w)

    softmax = xe.jit(jax.nn.softmax, dynamic=True)                             compiled once for any leading size of its first argument
    layer = xe.jit(layer, dynamic=True, shapes=("b, 128", "128, d"))           for any b and d

A shape class is the tree of the arguments, their types and known sizes, and the values of static arguments. `from_jax` compiles it.
Under a transformation of JAX there are no arrays to run on: a call there is refused.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial, update_wrapper
from itertools import count
from typing import Any, cast, overload

from xla_emitters.errors import Unsupported, UsageError
from xla_emitters.explore.from_jax.jax_program import JaxProgram, from_jax, jax_package, symbolic_specs
from xla_emitters.explore.from_jax.jax_words import STAGE

KEPT = 128
"""Most programs that one function keeps; the one that was not called for the longest time goes first."""


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Jitted:
    """What `jit` returns: called like the function, with the programs that its calls were compiled to in `programs`."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnames: Sequence[str],
        dynamic: bool,
        shapes: Any,
        constraints: Sequence[str],
        options: Mapping[str, Any],
    ) -> None:
        info = getattr(
            function, "_jit_info", None
        )  # of a jitted function; JAX has no public name for its static arguments
        self._function, self._options = function, options
        self._dynamic, self._shapes, self._constraints = dynamic or shapes is not None, shapes, constraints
        self._programs = OrderedDict[Hashable, JaxProgram]()
        self._unknown: dict[Hashable, tuple[tuple[bool, ...], ...]] = {}
        update_wrapper(self, function)
        self._parameters = inspect.signature(function).parameters
        by_number: list[str] = [list(self._parameters)[number] for number in getattr(info, "static_argnums", ())]
        self._static: frozenset[str] = frozenset((*static_argnames, *getattr(info, "static_argnames", ()), *by_number))
        if unknown := sorted(self._static - self._parameters.keys()):
            raise UsageError(f"{self.__name__} has no argument '{unknown[0]}'", stage=STAGE)

    __name__: str

    @property
    def programs(self) -> tuple[JaxProgram, ...]:
        """The kept programs; the one that was called last is the last."""
        return tuple(self._programs.values())

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The function's result, computed where the arrays are: see `JaxProgram`."""
        names, values = self._bound(arguments, keywords)
        program = self._program(names, values)
        return program(*(value for name, value in zip(names, values, strict=True) if name not in self._static))

    def program(self, *arguments: Any, **keywords: Any) -> JaxProgram:
        """The program of a call, which is compiled but not run."""
        return self._program(*self._bound(arguments, keywords))

    def _bound(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Any]]:
        """The names of the arguments that were given, and their values; those of `*args` have numbers."""
        names, values = list[str](), list[Any]()
        numbers = count()
        for name, value in (
            inspect.Signature([*self._parameters.values()]).bind(*arguments, **keywords).arguments.items()
        ):
            match self._parameters[name].kind:
                case inspect.Parameter.VAR_POSITIONAL:
                    names += [f"*{next(numbers)}" for _ in value]
                    values += value
                case inspect.Parameter.VAR_KEYWORD:
                    names += value
                    values += value.values()
                case _:
                    names.append(name)
                    values.append(value)
        return tuple(names), values

    def _program(self, names: tuple[str, ...], values: Sequence[Any]) -> JaxProgram:
        jax = jax_package()
        static = {number: value for number, value in enumerate(values) if names[number] in self._static}
        traced = [value for number, value in enumerate(values) if number not in static]
        leaves, tree = jax.tree.flatten(traced)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            raise Unsupported(
                f"{self.__name__} was called inside of a transformation of JAX (jit, grad, vmap ...): there are no arrays to run it on",
                stage=STAGE,
                help=f"transform the function first: xla_emitters.jit(jax.grad(f)); or leave {self.__name__} as it is inside jax.jit",
            )
        kinds = [jax.typeof(leaf) for leaf in leaves]
        sizes = tuple(kind.shape for kind in kinds)
        ranked = names, tree, tuple((kind.dtype, kind.weak_type, len(kind.shape)) for kind in kinds), _hashed(static)
        key: Hashable = ranked, self._known(ranked, sizes)
        if (program := self._programs.get(key)) is None:
            given: Sequence[Any] = values
            if self._dynamic:
                shapes = self._shapes if self._shapes is not None else _leading(jax, values, static)
                given = symbolic_specs(values, static, shapes, self._constraints)
                specs = jax.tree.leaves([each for number, each in enumerate(given) if number not in static])
                self._unknown[ranked] = tuple(tuple(not isinstance(size, int) for size in spec.shape) for spec in specs)
                key = ranked, self._known(ranked, sizes)
            function = jax.jit(self._positional(names), static_argnums=tuple(static))
            program = from_jax(function, *given, dynamic=self._dynamic, **self._options)
            self._programs[key] = program
            if len(self._programs) > KEPT:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        return program

    def _known(self, ranked: Hashable, sizes: Sequence[tuple[int, ...]]) -> Hashable:
        """The sizes that a program is for: all, but those that it keeps unknown."""
        unknown = self._unknown.get(ranked)
        if unknown is None:
            return tuple(sizes)
        return tuple(
            tuple(None if is_unknown else size for size, is_unknown in zip(*each, strict=True))
            for each in zip(sizes, unknown, strict=True)
        )

    def _positional(self, names: tuple[str, ...]) -> Callable[..., Any]:
        """The function with positional arguments of these names alone: those of `from_jax` are."""
        own = [name for name, parameter in self._parameters.items() if parameter.kind in _POSITIONAL]
        places = 0
        while places < len(names) and (names[places][0] == "*" or names[: places + 1] == tuple(own[: places + 1])):
            places += 1
        if places == len(names):
            return self._function

        def call(*values: Any) -> Any:
            return self._function(*values[:places], **dict(zip(names[places:], values[places:], strict=True)))

        return cast("Callable[..., Any]", update_wrapper(call, self._function, assigned=("__name__",), updated=()))


def _hashed(static: Mapping[int, Any]) -> Hashable:
    """raises UsageError for a value that cannot be part of a key"""
    for value in static.values():
        try:
            hash(value)
        except TypeError as error:
            raise UsageError(f"the value of a static argument cannot be hashed: {value!r}", stage=STAGE) from error
    return tuple((number, type(cast("object", value)), value) for number, value in static.items())


def _leading(jax: Any, values: Sequence[Any], static: Mapping[int, Any]) -> Any:
    """`shapes` with an unknown leading size of the first argument that has arrays with dimensions. raises UsageError where none has"""
    texts: list[Any] = [None] * len(values)
    for number, value in enumerate(values):
        leaves, tree = jax.tree.flatten(value)
        ranks: list[int] = [len(jax.typeof(leaf).shape) for leaf in leaves] if number not in static else []
        if any(ranks):
            texts[number] = jax.tree.unflatten(tree, ["b, ..." if rank else "..." for rank in ranks])
            return tuple(texts)
    raise UsageError("dynamic=True, but no argument is an array with dimensions", stage=STAGE)


@overload
def jit(
    function: Callable[..., Any],
    *,
    static_argnames: str | Sequence[str] = (),
    dynamic: bool = False,
    shapes: Any = None,
    constraints: Sequence[str] = (),
    **options: Any,
) -> Jitted: ...
@overload
def jit(
    function: None = None,
    *,
    static_argnames: str | Sequence[str] = (),
    dynamic: bool = False,
    shapes: Any = None,
    constraints: Sequence[str] = (),
    **options: Any,
) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnames: str | Sequence[str] = (),
    dynamic: bool = False,
    shapes: Any = None,
    constraints: Sequence[str] = (),
    **options: Any,
) -> Jitted | Callable[[Callable[..., Any]], Jitted]:
    """A function that compiles itself at its first call, and once more for each other shape class; also as a decorator.

    function         a function that JAX can trace
    static_argnames  names of arguments whose values it needs while it is traced; they must be hashable
    dynamic          whether a program keeps sizes unknown, so that one is for all of them: those in `shapes`; without it the leading sizes
                     of the arrays in the first argument that has any, which are taken to be equal
    shapes, constraints  as in `from_jax`; a text for each argument of the call. They imply `dynamic`
    options          the others of `from_jax`: target, flags, tune ...
    returns          a `Jitted`, called like the function; `.programs` are those that are kept, `.program(x)` is that of a call
    raises           what `from_jax` raises, at the call; Unsupported for a call under jax.jit, jax.grad and the like

    >>> import jax, numpy
    >>> softmax = jit(jax.nn.softmax, dynamic=True)
    >>> [softmax(numpy.ones((b, 4), "float32")).shape for b in (2, 3, 7)], len(softmax.programs)
    ([(2, 4), (3, 4), (7, 4)], 1)
    """
    names = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
    if function is None:
        return partial(jit, static_argnames=names, dynamic=dynamic, shapes=shapes, constraints=constraints, **options)
    if not callable(function):
        raise UsageError(f"jit takes a function, not {function!r}", stage=STAGE)
    return Jitted(function, names, dynamic, shapes, constraints, options)
