"""Writes the page as one HTML file: no server, nothing to load. Texts are compressed; the browser unpacks a text when it is viewed.

<script type="text/plain" id="c4">H4sIAAAA...</script>      gzip, base64
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from xla_emitters.explore.opcodes import sentences

SCRIPTS = ("diff.js", "listing.js", "graph.js", "flow.js", "threads.js", "rewrites.js", "page.js")
SERVED = "served.js"
"""Before page.js: what only a page has that a server answers."""


def page_html(index: Mapping[str, Any], chunks: Sequence[str]) -> str:
    """The HTML of `data.program_data` or `data.dynamic_data`."""
    return _html(index, chunks, SCRIPTS)


def served_html(target: str) -> str:
    """The HTML of a page that asks its server for the data (`tools/page_server`)."""
    index = {"title": "xla-emitters", "target": target, "served": True}
    return _html(index, (), (*SCRIPTS[:-1], SERVED, SCRIPTS[-1]))


def _html(index: Mapping[str, Any], chunks: Sequence[str], scripts: Sequence[str]) -> str:
    room = files("xla_emitters.explore.page")
    style = (room / "page.css").read_text("utf-8")
    code = "\n".join((room / name).read_text("utf-8") for name in scripts)
    texts = "\n".join(
        f'<script type="text/plain" id="c{number}">{_packed(text)}</script>' for number, text in enumerate(chunks)
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f'<title>{escape(str(index["title"]))}</title>\n<style>\n{style}</style></head>\n<body>\n<div id="app"></div>\n'
        f"{texts}\n"
        f'<script type="text/plain" id="opcodes">{_packed(json.dumps(sentences(), separators=(",", ":")))}</script>\n'
        f'<script type="text/plain" id="index">{_packed(json.dumps(index, separators=(",", ":")))}</script>\n'
        f"<script>\n{code}</script>\n</body></html>\n"
    )


def _packed(text: str) -> str:
    # Level 9 takes three times as long for 5 % less.
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
