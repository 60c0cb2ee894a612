"""Whole listings in tests: `make bless` writes them anew; the change is reviewed like any other.

    // RUN: xla-emitters compile --stage flat %s | filecheck %s --check-prefix FLAT
    // BLESSED FLAT
    // FLAT:      #map = ...                     from here to the first line that does not begin with "// FLAT":
    // FLAT-NEXT: module attributes ...          what the tool printed when it was last blessed

Lines without that mark are written by hand, with names captured and what does not matter left out; nothing here touches them.
"""

from pathlib import Path


def prefix_of(command: list[str]) -> str:
    """The prefix that a `filecheck` command looks for."""
    return command[command.index("--check-prefix") + 1] if "--check-prefix" in command else "CHECK"


def bless(path: Path, prefix: str, output: str) -> bool:
    """Puts `output` in the place of the file's blessed listing; False when it has none of that prefix."""
    lines = path.read_text().split("\n")
    mark = f"// BLESSED {prefix}"
    if mark not in lines:
        return False
    start = lines.index(mark) + 1
    end = start
    while end < len(lines) and lines[end].startswith((f"// {prefix}:", f"// {prefix}-NEXT:", f"// {prefix}-EMPTY:")):
        end += 1
    lines[start:end] = listing(prefix, output)
    path.write_text("\n".join(lines))
    return True


def listing(prefix: str, output: str) -> list[str]:
    """`output` as lines that FileCheck wants one after the other."""
    made = list[str]()
    for number, line in enumerate(output.rstrip("\n").split("\n")):
        text = line.replace("{{", "{{[{][{]}}").replace("[[", "{{\\[\\[}}")
        kind = f"{prefix}:     " if number == 0 else f"{prefix}-NEXT:"
        made.append(f"// {kind} {text}" if line else f"// {prefix}-EMPTY:")
    return made
