"""Imports go one way: a wing or a file beside them may import only those above it in `LAYERS`; those on one line never meet."""

import ast
import runpy
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import xla_emitters
from xla_emitters.rewrite.pass_table import PASSES

PACKAGE, ROOT = Path(xla_emitters.__file__).parent, Path(__file__).parents[2]
LAYERS = (
    ("errors", "settings"),
    ("support",),
    ("algebra", "dtypes", "library", "plugins", "trace"),
    ("device", "functions"),
    ("dialects", "program"),
    ("rewrite", "text"),
    ("graph", "lowering", "transforms"),
    ("dynamic", "emitters"),
    ("runtime",),
    ("pricing",),
    ("tuning",),
    ("pipelines",),
    ("explore", "extend", "universe"),
    ("tools",),
)
# Modules that import each other in a circle, with the reason why they still do; to be emptied.
ENTRANCES = ("__init__.py", "__main__.py")
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}


def files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.name not in ENTRANCES)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """The file's imports and classes, and its calls where it imports by one: most of a file is expressions."""
    text = path.read_text()
    if "import_module" not in text:
        return rooms()["imports_and_classes"](path)
    found = ast.walk(ast.parse(text))
    return tuple(node for node in found if isinstance(node, (ast.Import, ast.ImportFrom, ast.Call, ast.ClassDef)))


@cache
def rooms() -> dict[str, Any]:
    """docs/rooms.py"""
    return runpy.run_path(str(ROOT / "docs" / "rooms.py"))


@cache
def drawn_imports() -> dict[str, set[str]]:
    """Room -> the rooms that it imports, as docs/rooms.py finds them."""
    return rooms()["imports"]()


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module name that the file imports, late imports too."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names) if module == "xla_emitters" else (module,)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module" and node.args:
            if isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value)


def test_imports_go_one_way() -> None:
    for path in files():
        room = room_of(path)
        assert room in RANK, f"'{room}' is no room; add it to LAYERS where it belongs"
        for name in imports(path):
            if name.startswith("xla_emitters."):
                other = name.split(".")[1]
                assert other == room or RANK[other] < RANK[room], f"{path.relative_to(PACKAGE)} imports {name}"


def test_only_the_map_and_the_verbs_choose_by_price() -> None:
    rooms = {room_of(path) for path in files() if any(name.startswith("xla_emitters.tuning") for name in imports(path))}
    assert rooms == {"tuning", "pipelines"}


def module_name(path: Path) -> str:
    """`dialects.xla_gpu` for dialects/xla_gpu/__init__.py."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def loaded_by(path: Path, modules: frozenset[str]) -> Iterator[str]:
    """The modules that the file's imports run, late imports too: those named, and the faces of their packages.

    A module's own packages are left out: they run first whatever it imports. A face that it names is not left out.
    """
    own = module_name(path)
    for node in nodes(path):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name.removeprefix("xla_emitters.") in modules else str(node.module) for name in inside]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module" and node.args:
            names = [str(node.args[0].value)] if isinstance(node.args[0], ast.Constant) else []
        for name in (name.removeprefix("xla_emitters.") for name in names):
            parts = name.split(".")
            faces = (".".join(parts[:n]) for n in range(1, len(parts)))
            yield from ({name, *(face for face in faces if not f"{own}.".startswith(f"{face}."))} & modules) - {own}


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The strongly connected components of more than one node, after Tarjan."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for other in graph[node]:
            if other not in number:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == number[node]:
            component = stack[stack.index(node) :]
            del stack[-len(component) :]
            if len(component) > 1:
                found.add(frozenset(component))

    for node in graph:
        if node not in number:
            visit(node)
    return found


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(graph) == {frozenset("abc"), frozenset("de")}


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = frozenset(map(module_name, files()))
    graph = {module_name(path): set(loaded_by(path, modules)) for path in files()}
    assert "dialects.xla_gpu.loops" in graph["dialects.xla_gpu"]
    assert not circles(graph)


def test_no_pass_is_made_of_another() -> None:
    """The list alone says which pass follows which: a file that holds one imports none that does."""
    passes = {
        module_name(path)
        for path in files()
        if any(
            isinstance(node, ast.ClassDef) and {"KernelPass", "DevicePass"} & set(map(ast.unparse, node.bases))
            for node in nodes(path)
        )
    }
    assert len(passes) > 30
    passes.discard("rewrite.kernel_pass")  # the bases
    for path in files():
        if module_name(path) in passes:
            assert not set(loaded_by(path, frozenset(passes))), path


@pytest.mark.parametrize(
    ("module", "homes"),
    [
        ("cupy", {"runtime/cuda/cupy_platform.py"}),
        ("islpy", {"explore/prove.py"}),
        ("jax", {"explore/from_jax/jax_program.py"}),
        ("jaxlib", {"text/binary/jaxlib_process.py", "explore/real_xla.py"}),
        ("torch", {"explore/from_torch/torch_program.py"}),
        ("torchax", {"explore/from_torch/torch_rows.py"}),
        ("llvmlite", {"lowering/cpu/cpu_probe.py", "lowering/cpu/cpu_target.py", "lowering/toolchain/llvm_process.py"}),
        # LLVM's tools; the command that reduce asks
        ("subprocess", {"support/processes.py", "tools/reduce_verb.py"}),
    ],
)
def test_heavy_imports_have_one_home(module: str, homes: set[str]) -> None:
    found = {
        str(path.relative_to(PACKAGE)) for path in files() if any(n.split(".")[0] == module for n in imports(path))
    }
    assert found <= homes


def test_no_star_imports() -> None:
    for path in files():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
                # `mlir/arith.py` stands for xDSL's module of that name, with some classes replaced.
                stem = (path.parent if path.name == "__init__.py" else path).stem
                assert "mlir" in path.parts, path
                assert node.module == f"xdsl.dialects.{stem}", path


def test_the_drawing_of_the_imports_is_of_this_tree() -> None:
    """docs/rooms.svg is what `python docs/rooms.py` makes now, and its arrows agree with LAYERS."""
    drawn, graph = rooms(), drawn_imports()
    assert drawn["DRAWING"].read_text() == drawn["drawing"](graph), "run: python docs/rooms.py"
    assert graph.keys() == {room_of(path) for path in files()}
    assert all(RANK[other] < RANK[room] for room, others in graph.items() for other in others)


def test_an_arrow_that_follows_from_others_is_not_drawn() -> None:
    drawn = rooms()
    graph = {"a": set(), "b": {"a"}, "c": {"a", "b"}}
    assert drawn["layers"](graph) == [["a"], ["b"], ["c"]]
    assert drawn["needed"](graph) == [("b", "a"), ("c", "b")]
    with pytest.raises(ValueError, match="in a circle: a, b"):
        drawn["layers"]({"a": {"b"}, "b": {"a"}})


MOST_ARROWS = 110


def test_few_arrows_between_wings() -> None:
    """Wings are the folders; files beside them are the ground on which all stand. More arrows: something is in the wrong wing."""
    graph = drawn_imports()
    wings = {room for room in graph if (PACKAGE / room).is_dir()}
    arrows = [(wing, other) for wing in wings for other in graph[wing] & wings]
    assert len(wings) < 22
    assert len(arrows) <= MOST_ARROWS


def test_the_middles_do_not_import_each_other() -> None:
    """Nor does what fusions need import what only unknown sizes need."""
    graph = drawn_imports()
    assert "dynamic" not in graph["emitters"] | graph["graph"] | graph["transforms"] | graph["lowering"]
    assert "emitters" not in graph["dynamic"]


def test_a_file_name_names_one_thing() -> None:
    """Two files of one name are told apart by their folders only, which neither a search nor an editor's tab shows."""
    paths = sorted((path.stem, str(path.relative_to(PACKAGE))) for path in files() if path.name != "__init__.py")
    again = [pair for pair in pairwise(paths) if pair[0][0] == pair[1][0]]
    assert not again


def test_the_file_of_a_pass_is_named_after_it() -> None:
    stems = {name: name.removeprefix("xla-").removeprefix("gpu-").replace("-", "_") for name in PASSES}
    files_of_passes = [PACKAGE.joinpath(*room.split("."), f"{stems[name]}.py") for name, room in PASSES.items()]
    assert [path for path in files_of_passes if not path.is_file()] == []
