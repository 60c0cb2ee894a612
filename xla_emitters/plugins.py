"""Extensions from outside this package, registered by a call or by the entry points of installed packages.

    # pyproject.toml of another package
    [project.entry-points."xla_emitters.plugins"]
    strided = "strided_emitter:register"             a function without arguments that calls xe.register_emitter and the like

    [project.entry-points."xla_emitters.functions"]
    hypot = "my_functions:HYPOT"                     a RealFunction, added when the tables of functions are first imported

Each register function is in the package that uses what it registers: `register_emitter` (emitters.emit), `register_pass`
(pipelines.pass_lists), `register_device` (device), `register_function` (functions), `register_library_call` (dialects.hlo.custom_calls).
This file has what they share: the entry points, the files that a cached program depends on, and whose fault an exception is.

What only a plugin or a plugin's failure needs is imported inside functions: every command loads this file.
Source: Python packaging, "Entry points specification".
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, cast

from xla_emitters.errors import Place, PluginError, UsageError, XlaEmittersError
from xla_emitters.settings import DISABLE_PLUGINS, read_settings
from xla_emitters.support.late_dataclass import dataclass

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PLUGINS = "xla_emitters.plugins"
FUNCTIONS = "xla_emitters.functions"
_LAST_CALLS = 100
_OURS = ("xla_emitters", "xdsl", "builtins")
"""An environment variable: if it is set, no entry point is loaded."""


@dataclass(frozen=True)
class Plugin:
    """One thing that was registered.

    kind   "emitter", "pass", "device", "function", "library call"
    name   as messages and listings show it
    owner  the registered class or function; None for a plain value
    file   where the owner is defined; None at a Python prompt
    """

    kind: str
    name: str
    owner: Any
    file: Path | None

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}' ({self.file or 'in no file'})"


_registered: list[Plugin] = []
_loaded: set[str] = set()
_failed: list[tuple[str, XlaEmittersError]] = []
"""The entry points that could not be loaded, and why. They are left out: everything else works without them."""


def registered() -> tuple[Plugin, ...]:
    """Everything registered from outside, in order. Loads the entry points first."""
    load()
    return tuple(_registered)


def failed() -> tuple[tuple[str, XlaEmittersError], ...]:
    """The names of the entry points that could not be loaded, each with its error. Loads the entry points first."""
    load()
    return tuple(_failed)


def note(kind: str, name: str, owner: Any = None, file: Path | None = None) -> None:
    """Records what was registered, unless it is this package's own.

    owner  a class, a function, or an instance of a class from outside
    file   for a plain value, such as a description of a device: its source file; by default the file of the caller
    """
    if owner is not None:
        found = cast(Any, owner if isinstance(owner, type | FunctionType) else type(owner))
        if is_outside(found):
            _registered.append(Plugin(kind, name, found, file_of(found)))
    else:
        _registered.append(Plugin(kind, name, None, file or _calling_file()))


def _calling_file() -> Path | None:
    """The file of the innermost call from outside this package."""
    import traceback

    calls = (Path(frame.filename) for frame in reversed(traceback.extract_stack()) if not _is_ours(frame.filename))
    file = next(calls, None)
    return file if file is not None and file.is_file() else None


def is_outside(owner: Any) -> bool:
    """Whether a class or function is defined outside this package and outside xDSL."""
    return str(owner.__module__).partition(".")[0] not in _OURS


def file_of(owner: Any) -> Path | None:
    """The file in which a class or function is defined; None if it is in no file."""
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    return Path(file) if file else None


def sources(unregistered: Iterable[type] = ()) -> tuple[Path, ...] | None:
    """The files of all plugins, of their packages, and of what these import; None if a plugin is in no file, as at a Python prompt.

    unregistered  classes used like plugins, such as the passes of a pipeline; classes of this package and of xDSL are ignored
    """
    found = dict[Path, None]()
    pending = [*(plugin.file for plugin in registered()), *map(file_of, filter(is_outside, unregistered))]
    while pending:
        file = pending.pop()
        if file is None:
            return None
        if file not in found:
            own = tuple(_package_of(file))
            found |= dict.fromkeys(own)
            pending += (imported for each in own for imported in _imported_by(each))
    return tuple(sorted(found))


def _package_of(file: Path) -> Iterator[Path]:
    """The Python files of the outermost package that contains a file; only the file if it is in no package."""
    top = file
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    yield from (file,) if top == file else top.rglob("*.py")


def _imported_by(file: Path) -> Iterator[Path]:
    """The files of modules that a file imports anywhere, found by name, without importing them. Installed packages are left out."""
    import ast

    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    names = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    for name in names - sys.stdlib_module_names - set(_OURS):
        spec = PathFinder.find_spec(name)
        origin = Path(spec.origin) if spec is not None and spec.origin is not None else None
        is_installed = origin is not None and {"site-packages", "dist-packages"}.intersection(origin.parts)
        if origin is not None and origin.suffix == ".py" and not (is_installed and origin.name == "__init__.py"):
            yield origin


# -------------------------------------------------------------------------------------------------------------- entry points


def load() -> None:
    """Calls the entry points of the group `xla_emitters.plugins`, once. One that fails is left out, with a warning."""

    def register(point: EntryPoint) -> None:
        value, what = _value_of(point), f"plugin '{point.name}'"
        if not callable(value):
            said = f"{what}: {point.value} is not a function"
            raise PluginError(said, stage="plugins", place=_start_of(point), help='name = "module:function"')
        with blamed(value, what), _registering(what):
            value()

    _for_each(PLUGINS, register)


def _for_each(group: str, take: Callable[[EntryPoint], None]) -> None:
    """Calls `take` once for each entry point of the group; a failure is recorded, and is a warning."""
    for point in _entry_points(group):
        try:
            take(point)
        except XlaEmittersError as error:
            _failed.append((point.name, error))
            where = f"{error.place.file}:{error.place.line}:{error.place.column}: " if error.place else ""
            help = error.help or f"mend or uninstall it; {DISABLE_PLUGINS}=1 leaves all plugins out"
            warnings.warn(f"{where}{error.message}; it is left out ({help})", stacklevel=2)


@contextmanager
def _registering(what: str) -> Generator[None]:
    """Blames the plugin, at its line, for a wrong registration in the body. raises PluginError for a UsageError"""
    try:
        yield
    except UsageError as error:
        place = _innermost(error.__traceback__, None)
        raise PluginError(f"{what}: {error.message}", stage="plugins", place=place, help=error.help) from error


def functions_of_entry_points(add: Callable[[Any, Path | None], None]) -> None:
    """Calls `add` once for each value of the group `xla_emitters.functions`, with the value and its source file.

    One that cannot be imported, or that `add` refuses with a UsageError, is left out, with a warning.
    """

    def take(point: EntryPoint) -> None:
        value, place = _value_of(point), _start_of(point)
        try:
            add(value, Path(place.file) if place else None)
        except UsageError as error:
            said = f"plugin '{point.name}': {error.message}"
            raise PluginError(said, stage="plugins", place=place, help=error.help) from error

    _for_each(FUNCTIONS, take)


def _start_of(point: EntryPoint) -> Place | None:
    """The first line of the module that an entry point names; None where it is in no file."""
    file = getattr(sys.modules.get(point.module), "__file__", None)
    return Place(file, 1, 1) if file else None


_is_left_out = False


@contextmanager
def left_out() -> Generator[None]:
    """Inside it no entry point is loaded: `--no-plugins`."""
    global _is_left_out
    _is_left_out, before = True, _is_left_out
    try:
        yield
    finally:
        _is_left_out = before


def _entry_points(group: str) -> Iterable[EntryPoint]:
    """Those of the group, at the first call."""
    if group in _loaded or _is_left_out or read_settings().no_plugins:
        return ()
    _loaded.add(group)
    if not _may_have(group):
        return ()
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _value_of(point: EntryPoint) -> Any:
    """What the entry point names. raises PluginError if it cannot be imported"""
    try:
        with _registering(f"plugin '{point.name}'"):
            return point.load()
    except XlaEmittersError:
        raise
    except (Exception, SystemExit) as error:
        at = _innermost(error.__traceback__, None) or _start_of(point)
        if isinstance(error, SyntaxError) and error.filename and error.lineno:
            at = Place(error.filename, error.lineno, error.offset or 1)
        said = f"plugin '{point.name}' cannot be imported: {type(error).__name__}: {error}"
        raise PluginError(said, stage="plugins", place=at) from error


def _may_have(group: str) -> bool:
    """Whether an installed package may have entry points of the group: False only if no `entry_points.txt` on the path names the group.

    Reads the files directly: almost no command finds one, and importlib.metadata takes longer to load than a small kernel to compile.
    """
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if finder is not PathFinder):
        return True
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except NotADirectoryError:
            return True  # an archive
        except OSError:
            continue
        for name in names:
            if name.endswith((".egg", ".egg-link")):
                return True
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if group.encode() in file.read():
                            return True
                except OSError:
                    continue
    return False


# -------------------------------------------------------------------------------------------------------------- whose fault


@contextmanager
def blamed(owner: Any, what: str) -> Generator[None]:
    """Blames `owner`, if it is from outside, for an exception in the body that is not one of our errors.

    An exit counts as an exception. Too deep recursion is the input's fault, unless the innermost calls are the plugin's.

    owner   a class or function
    what    the owner's description, for the message: "emitter 'strided'"
    raises  PluginError with the plugin's file and line
    """
    try:
        yield
    except (XlaEmittersError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        if not is_outside(owner) or (isinstance(error, RecursionError) and not _recurses(owner, error)):
            raise
        raise fault(owner, what, f"{type(error).__name__}: {error}", error) from error


def _recurses(owner: Any, error: RecursionError) -> bool:
    """Whether code of the owner's file is among the innermost calls of the error."""
    import traceback

    file = file_of(owner)
    return any(Path(frame.filename) == file for frame in traceback.extract_tb(error.__traceback__)[-_LAST_CALLS:])


def fault(owner: Any, what: str, message: str, error: BaseException | None = None) -> PluginError:
    """The error for a plugin's mistake; its place is the plugin's line that was running, else where the plugin is defined."""
    file = file_of(owner)
    at = _innermost(error.__traceback__, file) if error is not None else None
    return PluginError(f"{what}: {message}", stage="plugins", place=at or _definition(owner))


def _innermost(frames: TracebackType | None, file: Path | None) -> Place | None:
    """The innermost line of the traceback that is in `file`; if `file` is None, that is in no file of this package."""
    import traceback

    found = [
        f for f in traceback.extract_tb(frames) if (Path(f.filename) == file if file else not _is_ours(f.filename))
    ]
    if not found or not found[-1].lineno:
        return None
    last = found[-1]
    assert last.lineno is not None
    return Place(last.filename, last.lineno, (last.colno or 0) + 1, (last.end_colno or 0) + 1)


def _definition(owner: Any) -> Place | None:
    import inspect

    try:
        return Place(str(inspect.getsourcefile(owner)), inspect.getsourcelines(owner)[1], 1)
    except (OSError, TypeError):
        return None


def _is_ours(file: str) -> bool:
    is_import = Path(file).parts[-3:-1] == ("importlib", "metadata")
    return Path(file).is_relative_to(Path(__file__).parent) or file.startswith("<frozen") or is_import


def refuse_double(kind: str, name: str, known: Container[str]) -> None:
    """raises UsageError if the name is known already"""
    if name in known:
        raise UsageError(f"{kind} '{name}' is registered already", stage="plugins")
