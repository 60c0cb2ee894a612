"""What is wrong with files, for tools that show it beside their lines: SARIF, and GitHub's annotations.

    Finding("hlo.parse", "expected a shape", "bias.hlo", 6, 38, 42)
    {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "xla-emitters", ...}}, "results": [{"ruleId": "hlo.parse", ...
    ::error file=bias.hlo,line=6,col=38,endColumn=42,title=hlo.parse::expected a shape

Source: SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/); GitHub, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from xla_emitters.errors import AS_TEXT, XlaEmittersError


@dataclass(frozen=True)
class Finding:
    """Something that is wrong. `line` and `column` count from 1; 0: the whole file. `end_column` is exclusive."""

    rule: str
    message: str
    file: str
    line: int = 0
    column: int = 0
    end_column: int = 0


def findings_of(error: XlaEmittersError, file: str) -> Iterator[Finding]:
    """An error and those that came with it; one without a place is about `file`."""
    message = "\n".join((error.message, *error.details, *([f"help: {error.help}"] if error.help else [])))
    rule, place = error.stage or "error", error.place
    if place is None or place.file.endswith(AS_TEXT):
        found = Finding(rule, f"{place}: {message}" if place else message, file)
    else:
        found = Finding(rule, message, place.file, place.line, place.column, place.end_column)
    yield found
    for other in error.others:
        yield from findings_of(other, file)


def at_instruction(text: str, name: str, file: str, rule: str, message: str) -> Finding:
    """A finding about the instruction or the computation that a kernel is named after, where the text has it."""
    for number, line in enumerate(text.splitlines(), 1):
        defined = re.match(r"\s*(?:ROOT )?(%?[\w.-]+) =|(?:ENTRY )?(%?[\w.-]+)\s.*\{\s*$", line)
        group = defined.lastindex if defined else None
        if defined and group and re.sub(r"\W", "_", defined[group].removeprefix("%")) == re.sub(r"\W", "_", name):
            return Finding(rule, message, file, number, defined.start(group) + 1, defined.end(group) + 1)
    return Finding(rule, message, file)


def add_findings_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("sarif", "github"),
        help="sarif: print what is wrong as SARIF 2.1.0; github: print also a line for each that GitHub shows at the line of the file",
    )


def print_findings(findings: Sequence[Finding], form: str) -> None:
    """Prints the findings as `--format` says."""
    lines = [json.dumps(_sarif(findings), indent=1)] if form == "sarif" else map(_annotation, findings)
    print(*lines, sep="\n", flush=True)


def _sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    rules = dict.fromkeys(finding.rule for finding in findings)
    driver = {"name": "xla-emitters", "version": version("xla-emitters"), "rules": [{"id": rule} for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, list(rules).index(finding.rule)) for finding in findings],
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    path = PurePath(finding.file)
    uri = Path(path).as_uri() if path.is_absolute() else quote(path.as_posix())
    where: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if finding.line:
        region = {"startLine": finding.line, "startColumn": finding.column, "endColumn": finding.end_column}
        where["region"] = {key: value for key, value in region.items() if value}
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": where}],
    }


def _annotation(finding: Finding) -> str:
    """
    >>> print(_annotation(Finding("fail-on", "a,\\nb", "x.hlo", 3)))
    ::error file=x.hlo,line=3,title=fail-on::a,%0Ab
    """
    numbers = {"line": finding.line, "col": finding.column, "endColumn": finding.end_column}
    given: Iterable[tuple[str, Any]] = [
        ("file", finding.file),
        *((key, number) for key, number in numbers.items() if number),
        ("title", finding.rule),
    ]
    properties = ",".join(f"{key}={_escaped(str(value), ':,')}" for key, value in given)
    return f"::error {properties}::{_escaped(finding.message)}"


def _escaped(text: str, more: str = "") -> str:
    for char in f"%\r\n{more}":
        text = text.replace(char, f"%{ord(char):02X}")
    return text
