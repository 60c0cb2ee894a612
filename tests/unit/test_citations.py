"""Everything that comments cite is in this repository."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
CITATION = re.compile(
    r"docs/reference/(\w+)((?:,? (?:and |section )?\d+(?:\.\d+)*(?: \([^)]*\))?|,? (?:and )?\"[^\"\n]+\")*)"
)
GONE = re.compile(r"(?<![\w/.-])(?:spec/[0-9]|design\.md|conventions\.md|style\.md)")


@cache
def sources() -> tuple[Path, ...]:
    rooms = ("xla_emitters", "tests", "docs", "benchmarks", "notebooks", "examples")
    found = [
        path for room in rooms for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".md", ".mlir", ".hlo")
    ]
    return (
        *(path for path in found if "corpus" not in path.parts and path != Path(__file__)),
        ROOT / "README.md",
        ROOT / "Makefile",
    )


@cache
def page(name: str) -> str:
    """The text of `docs/reference/NAME...md`."""
    (path,) = REFERENCE.glob(f"{name}-*.md" if name.isdecimal() else f"{name}.md")
    return path.read_text()


def cited() -> list[tuple[Path, str, str]]:
    """(file, page, what follows: numbers and names of sections)."""
    return [
        (path, found[1], found[2])
        for path in sources()
        if REFERENCE not in path.parents
        for found in CITATION.finditer(path.read_text())
    ]


def test_citations_are_found() -> None:
    assert len(cited()) > 100


@pytest.mark.parametrize("name", ["1", "2", "3", "4", "contracts"])
def test_every_section_that_is_cited_is_there(name: str) -> None:
    headings = re.findall(r"^#+ (.*)", page(name), re.M)
    numbers = {match[1] for heading in headings if (match := re.match(r"(\d+(?:\.\d+)*)\.? ", heading))}
    missing = list[str]()
    for path, cited_page, rest in cited():
        if cited_page != name:
            continue
        for number in re.findall(r"(?<![\d.\w])\d+(?:\.\d+)*", re.sub(r"\"[^\"]*\"|\([^)]*\)", "", rest)):
            if number not in numbers:
                missing.append(f"{path.relative_to(ROOT)}: {name} {number}")
        if name == "contracts":
            missing += [
                f"{path.relative_to(ROOT)}: {title}"
                for title in re.findall(r"\"([^\"]*)\"", rest)
                if title not in headings
            ]
    assert not missing


def test_nothing_cites_what_is_not_here() -> None:
    stale = [f"{path.relative_to(ROOT)}: {found[0]}" for path in sources() for found in GONE.finditer(path.read_text())]
    assert not stale


def test_what_the_seed_document_is_is_said_where_the_code_begins() -> None:
    """Nearly every file cites it: the package's first lines name the page that explains it, and pages that cite it link to it."""
    assert "docs/reference/index.md" in (ROOT / "xla_emitters" / "__init__.py").read_text()
    assert "## The seed documents" in page("index")
    citing = [path for path in (ROOT / "docs").rglob("*.md") if re.search("seed document", path.read_text(), re.I)]
    unexplained = [
        path.name for path in citing if path.parent != REFERENCE and "#the-seed-documents" not in path.read_text()
    ]
    assert unexplained == []
