"""Draws which wing of the package imports which: `python docs/rooms.py` writes docs/rooms.svg.

A room is a wing (a folder of `xla_emitters/`) or a file beside them.
Rooms are drawn in layers: each imports only rooms above it. An arrow that follows from two
others is left out. Late imports, inside functions, count too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "xla_emitters"
DRAWING = Path(__file__).parent / "rooms.svg"
WIDTH, ROW, BOX, HIGH = 1060, 74, 108, 30
"""Of the drawing, a layer, a box; in pixels."""


def room_of(path: Path) -> str:
    """
    >>> room_of(PACKAGE / "dialects" / "hlo" / "base.py"), room_of(PACKAGE / "program.py")
    ('dialects', 'program')
    """
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All statements, also those inside of others, without their expressions: a tenth of the nodes."""
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(statement, name, ()))


@cache
def imports_and_classes(path: Path) -> tuple[ast.Import | ast.ImportFrom | ast.ClassDef, ...]:
    """Those of a file, which is parsed once: tests/unit/test_layers.py asks too."""
    found = statements(ast.parse(path.read_text()).body)
    return tuple(node for node in found if isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef)))


def imported_rooms(path: Path) -> Iterable[str]:
    """The rooms that a file imports from, its own among them."""
    for node in imports_and_classes(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("xla_emitters."))


def imports() -> dict[str, set[str]]:
    """Room -> the other rooms that it imports. The package's face, `__init__.py`, is no room."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.parent == PACKAGE and path.stem in ("__init__", "__main__"):
            continue
        room = room_of(path)
        found.setdefault(room, set()).update(other for other in imported_rooms(path) if other != room)
    return found


def layers(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Rooms by the longest way to a room that imports none; those first.

    raises   ValueError where rooms import each other in a circle
    """
    rank: dict[str, int] = {}
    while len(rank) < len(graph):
        ready = [room for room in sorted(graph) if room not in rank and graph[room] <= rank.keys()]
        if not ready:
            raise ValueError(f"rooms import each other in a circle: {', '.join(sorted(graph.keys() - rank.keys()))}")
        for room in ready:
            rank[room] = 1 + max((rank[other] for other in graph[room]), default=-1)
    return [[room for room in sorted(rank) if rank[room] == number] for number in range(1 + max(rank.values()))]


def needed(graph: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows that do not follow from others: from a room to one that it imports."""
    below: dict[str, set[str]] = {}
    for layer in layers(graph):
        for room in layer:
            below[room] = set(graph[room]).union(*(below[other] for other in graph[room]))
    return [
        (room, other)
        for room in sorted(graph)
        for other in sorted(graph[room])
        if not any(other in below[between] for between in graph[room])
    ]


def drawing(graph: Mapping[str, set[str]]) -> str:
    """The SVG: what imports nothing is at the top, arrows go from a room up to what it imports."""
    rows = layers(graph)
    places: dict[str, tuple[float, float]] = {}
    for number, row in enumerate(rows):
        for at, room in enumerate(row):
            places[room] = (WIDTH * (at + 1) / (len(row) + 1), 30 + ROW * number)
    lines = []
    for room, other in needed(graph):
        (x, y), (to_x, to_y) = places[room], places[other]
        start, end = y - HIGH / 2, to_y + HIGH / 2
        bend = (start - end) * 0.45
        lines.append(
            f'<path d="M{x:.0f} {start:.0f} C{x:.0f} {start - bend:.0f} {to_x:.0f} {end + bend:.0f} {to_x:.0f} {end + 4:.0f}"'
            ' fill="none" stroke="#7a86a8" stroke-width="1.2" marker-end="url(#tip)"/>'
        )
    for room, (x, y) in places.items():
        lines.append(
            f'<rect x="{x - BOX / 2:.0f}" y="{y - HIGH / 2:.0f}" width="{BOX}" height="{HIGH}" rx="6" fill="#e8ecf8" stroke="#4051b5"/>'
        )
        lines.append(f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" fill="#1d2440">{room}</text>')
    height = 30 + ROW * (len(rows) - 1) + 30
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="14">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z" fill="#7a86a8"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
            *lines,
            "</svg>\n",
        )
    )


if __name__ == "__main__":
    DRAWING.write_text(drawing(imports()))
    print(DRAWING)
