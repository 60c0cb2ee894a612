"""What the package calls of CuPy, and what the tests' stand-in for CuPy has, beside a real CuPy: no GPU is needed to look names up.

    pip install --no-deps --target /tmp/cupy cupy-cuda12x cuda-pathfinder          version 13 wants fastrlock instead
    PYTHONPATH=/tmp/cupy make lab NAME=cupy_names

Names come from the syntax of `xla_emitters`: `cupy.cuda.driver.launchKernel`, and those of variables that such a name is assigned to.
Parameters are those of the signature, or of the line that Cython writes at the start of the documentation. A call must not have more
positional arguments, or other keywords, than the function has parameters. Ends with 1 if a name or a parameter is missing.
"""

import ast
import inspect
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from benchmarks.table import header

ROOT = Path(__file__).parents[1]
ROOTS = {"cupy": "cupy", "cupyx": "cupyx", "cupy_backends": "cupy_backends", "cuda": "cupy.cuda"}
CONTROLS = {"launches", "loads", "copies", "allocations", "state", "queues", "neighbours", "whole_package"}
"""What tests read and set of the stand-in; CuPy has no such thing."""


@dataclass
class Used:
    """A name of CuPy: where it is used, and how it is called: positional arguments, keywords."""

    places: list[str] = field(default_factory=list[str])
    calls: set[tuple[int, tuple[str, ...]]] = field(default_factory=set[tuple[int, tuple[str, ...]]])


class Names(ast.NodeVisitor):
    """Collects the names of one file."""

    def __init__(self, file: str, found: dict[str, Used]) -> None:
        self.file, self.found, self.known = file, found, dict(ROOTS)

    def chain(self, node: ast.expr) -> str | None:
        """`cupy.cuda.runtime` of the expression, if it is one."""
        match node:
            case ast.Name(id=name):
                return self.known.get(name)
            case ast.Attribute(attr="cupy" | "_cupy"):
                return "cupy"
            case ast.Attribute(value=value, attr=attr) if (start := self.chain(value)) is not None:
                return f"{start}.{attr}"
            case ast.Call(func=ast.Name(id="import_module"), args=[ast.Constant(value=str(name))]) if (
                name.partition(".")[0] in ROOTS
            ):
                return name
            case _:
                return None

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        self._assign(node.targets, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        self._assign([node.target], node.value)

    def _assign(self, targets: list[ast.expr], value: ast.expr | None) -> None:
        for target in targets:
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=False))
            for one, other in pairs:
                if isinstance(one, ast.Name) and other is not None and (name := self.chain(other)) is not None:
                    self.known[one.id] = name

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name, given = self.chain(node.func), node.args
        if isinstance(node.func, ast.Name) and node.func.id == "partial":
            name, given = self.chain(node.args[0]), node.args[1:]
        if name is not None and name not in ROOTS and not any(isinstance(each, ast.Starred) for each in given):
            keywords = tuple(sorted(each.arg for each in node.keywords if each.arg))
            self.found[name].calls.add((len(given), keywords))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.generic_visit(node)
        if (name := self.chain(node)) is not None and name not in ROOTS:
            self.found[name].places.append(f"{self.file}:{node.lineno}")


def used_names() -> dict[str, Used]:
    """Name -> its uses in the package."""
    found: dict[str, Used] = defaultdict(Used)
    for path in sorted((ROOT / "xla_emitters").rglob("*.py")):
        text = path.read_text()
        if "cupy" in text:
            Names(str(path.relative_to(ROOT)), found).visit(ast.parse(text))
    return dict(found)


def real(name: str) -> Any:
    """The object of that name. raises AttributeError, ImportError"""
    parts = name.split(".")
    found: Any = import_module(parts[0])
    for number, part in enumerate(parts[1:], start=2):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = import_module(".".join(parts[:number]))
    return found


def written(name: str) -> list[str] | None:
    """Parameters of a function whose module needs a library that is not here: from its source, or from the machine code's documentation.

    None: the function is not there.
    """
    # `cupy.cuda.nccl` is another name of a module of machine code.
    module, _, function = name.replace("cupy.cuda.nccl.", "cupy_backends.cuda.libs.nccl.").rpartition(".")
    if "nccl.NcclCommunicator" in module:
        module = module.removesuffix(".NcclCommunicator")
    parts = module.split(".")
    folder = Path(str(import_module(parts[0]).__file__)).parent.joinpath(*parts[1:])
    files = [*folder.glob("*.py"), *folder.parent.glob(f"{parts[-1]}*.so")]
    for path in files:
        text = path.read_bytes()
        if (match := re.search(rf"\b{function}\(([^)]*)\)".encode(), text)) is not None:
            return _names_in(match[1].decode())
        if path.suffix == ".so" and function.encode() in text:
            return ["*"]
    return None


def _names_in(text: str) -> list[str]:
    words = [re.split("[=:]", part)[0].split() for part in text.split(",") if part.strip()]
    return [word[-1] for word in words if word[-1] != "self"]


def parameters_of(function: Any) -> list[str] | None:
    """Names of parameters, without `self`; None where neither a signature nor documentation tells; ["*"] for any."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
        if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
            return ["*"]
        return [each.name for each in parameters if each.name != "self"]
    except (ValueError, TypeError):
        pass
    for text in (getattr(function, "__doc__", None), getattr(getattr(function, "__init__", None), "__doc__", None)):
        match = re.match(r"\s*[\w.]+\(([^)]*)\)", text or "")
        if match is not None:
            return ["*"] if "*" in match[1] else _names_in(match[1])
    return None


def problem(name: str, used: Used) -> str:
    """What a real CuPy lacks; "" if nothing."""
    parameters: list[str] | None
    try:
        function = real(name)
        parameters = parameters_of(function) if used.calls else ["*"]
    except (AttributeError, ImportError, RuntimeError) as error:
        if (parameters := written(name)) is None:
            return f"missing: {error}"
    if parameters is None or parameters == ["*"]:
        return ""
    for count, keywords in used.calls:
        if count + len(keywords) > len(parameters) or set(keywords) - set(parameters):
            return f"called with {count} arguments and {keywords}; it takes {', '.join(parameters)}"
    return ""


def of_stand_in() -> list[str]:
    """All names of the stand-in that CuPy must have."""
    sys.path.insert(0, str(ROOT / "tests"))
    from unit.runtime.fake_gpu import FOLDER

    text = (FOLDER / "cupy.py").read_text()
    namespace = ModuleType("stand_in")
    namespace.__file__ = str(FOLDER / "cupy.py")
    exec(compile(text, namespace.__file__, "exec"), namespace.__dict__)
    tree = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    spaces = {name for name, value in vars(namespace).items() if isinstance(value, SimpleNamespace | ModuleType)}
    assigned = {name for name in spaces if name in ("cuda", "random", "linalg", "fft", "lib")}
    found = list[str]()
    # A class that is a part of a module is looked up there.
    inner = {id(value) for space in assigned for value in _values_in(getattr(namespace, space))}
    for name in sorted((tree | assigned) - CONTROLS):
        value = getattr(namespace, name)
        if name[0] != "_" and id(value) not in inner and not (isinstance(value, type) and issubclass(value, Exception)):
            found += _within(f"cupy.{name}", value)
    for name, module in namespace.neighbours.items():
        found += [
            each for part, value in vars(module).items() if part[0] != "_" for each in _within(f"{name}.{part}", value)
        ]
    return found


def _values_in(space: Any) -> list[Any]:
    values = list[Any]()
    for value in vars(space).values():
        values += _values_in(value) if isinstance(value, SimpleNamespace) else [value]
    return values


def _within(name: str, value: Any) -> list[str]:
    """The name, or those of its parts; a class's methods too."""
    if isinstance(value, SimpleNamespace):
        return [each for part, inner in vars(value).items() for each in _within(f"{name}.{part}", inner)]
    if isinstance(value, type):
        parts = [part for part in vars(value) if part[0] != "_"]
        return [
            name,
            *(
                f"{name}.{part}"
                for part in parts
                if not issubclass(value, Exception) and part not in ("host", "module")
            ),
        ]
    return [name]


def is_there(name: str) -> bool:
    """Whether CuPy has a name of the stand-in; parts of what is no class there are not looked up."""
    try:
        parent = real(name.rpartition(".")[0])
        return not isinstance(parent, type | ModuleType) or real(name) is not None
    except (AttributeError, ImportError, RuntimeError):
        return written(name) is not None


def main() -> int:
    versions = [
        f"{each.metadata['Name']} {each.version}"
        for each in metadata.distributions()
        if "cupy" in (each.metadata["Name"] or "")
    ]
    print(
        header(
            f"Names of CuPy that are called, and those of the tests' stand-in, beside {', '.join(versions) or 'no CuPy'}"
        )
    )
    wrong = 0
    used = used_names()
    for name, each in sorted(used.items()):
        said = problem(name, each)
        wrong += bool(said)
        calls = " ".join(
            f"({count}{''.join(f', {word}=' for word in keywords)})" for count, keywords in sorted(each.calls)
        )
        print(f"{name:58} {calls:40} {said or 'ok'}")
    stand_in = of_stand_in()
    for name in stand_in:
        if not is_there(name):
            wrong += 1
            print(f"stand-in: {name:48} missing")
    print(f"{len(used)} names are called, the stand-in has {len(stand_in)}; {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
