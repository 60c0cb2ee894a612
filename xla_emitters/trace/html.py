"""A trace as HTML: the HLO on the left, a stage on the right, and the instructions that each line comes from.

    +-- HLO ---------------------+-- xla_gpu | inlined | [scf] | flat ... ----------------+
    |  mul_0 = multiply(p0, p0)  |  %5 = arith.mulf %4, %4 : bf16      <- lit when the    |
    |  ...                       |  ...                                   mouse is on it  |
    +----------------------------+--------------------------------------------------------+

One fragment without scripts: radio buttons choose the stage, and CSS (`:has`) highlights related lines, so that it works in
Jupyter, marimo and a plain page alike, in light and dark.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol

from pygments import highlight
from pygments.formatters import HtmlFormatter

from xla_emitters.trace.lexers import lexer_for

_DIFF_CLASSES = {"-": "xe-gone", "+": "xe-come", "@": "xe-place"}

_LIGHT = """--xe-fg:#1f2328; --xe-bg:#fff; --xe-soft:#f6f8fa; --xe-line:#d0d7de; --xe-lit:#fff1b8; --xe-op:#0550ae; --xe-type:#116329;
  --xe-var:#6639ba; --xe-num:#953800; --xe-str:#0a3069; --xe-kw:#cf222e; --xe-note:#59636e;"""
_DARK = """--xe-fg:#e6edf3; --xe-bg:#0d1117; --xe-soft:#161b22; --xe-line:#30363d; --xe-lit:#4d3c00; --xe-op:#79c0ff; --xe-type:#7ee787;
  --xe-var:#d2a8ff; --xe-num:#ffa657; --xe-str:#a5d6ff; --xe-kw:#ff7b72; --xe-note:#9198a1;"""
# The reader's own setting takes precedence over the theme of the surrounding page: marimo, Jupyter, Material.
_PALETTES = f"""
.xe {{ {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ .xe {{ {_DARK} }} }}
.dark .xe, [data-theme=dark] .xe, [data-jp-theme-light=false] .xe, [data-md-color-scheme=slate] .xe {{ {_DARK} }}
.light .xe, [data-theme=light] .xe, [data-jp-theme-light=true] .xe, [data-md-color-scheme=default] .xe {{ {_LIGHT} }}
"""
_STYLE = (
    _PALETTES
    + """
.xe { color:var(--xe-fg); background:var(--xe-bg); border:1px solid var(--xe-line); border-radius:6px; font-size:12px; overflow:hidden;
  font-family:system-ui,sans-serif; }
.xe .xe-body { display:flex; }
.xe .xe-hlo { flex:1 1 38%; min-width:0; border-right:1px solid var(--xe-line); }
.xe .xe-stages { flex:1 1 62%; min-width:0; }
.xe .xe-bar { background:var(--xe-soft); border-bottom:1px solid var(--xe-line); padding:4px 8px; }
.xe .xe-bar label { cursor:pointer; padding:2px 7px; border-radius:4px; white-space:nowrap; display:inline-block; }
.xe input { position:absolute; opacity:0; pointer-events:none; }
.xe input:focus-visible ~ .xe-bar { outline:2px solid var(--xe-op); }
.xe pre { margin:0; padding:6px 0; overflow:auto; max-height:32em; background:none; color:inherit; border:0; font-size:inherit;
  line-height:1.45; font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; }
.xe .xe-l { display:block; padding:0 8px; white-space:pre; width:max-content; min-width:100%; box-sizing:border-box; }
.xe .xe-panel { display:none; }
.xe .k, .xe .kc { color:var(--xe-kw); } .xe .kt { color:var(--xe-type); } .xe .nb, .xe .nf, .xe .nl { color:var(--xe-op); }
.xe .nv { color:var(--xe-var); } .xe .m, .xe .mi, .xe .mf, .xe .no { color:var(--xe-num); } .xe .s { color:var(--xe-str); }
.xe .xe-gone { background:color-mix(in srgb, var(--xe-kw) 16%, transparent); }
.xe .xe-come { background:color-mix(in srgb, var(--xe-type) 18%, transparent); }
.xe .xe-place { color:var(--xe-note); }
.xe .c1, .xe .cm, .xe .na { color:var(--xe-note); }
"""
)


class Listed(Protocol):
    """What is shown of a step: its text, and for each line the HLO instructions that it comes from.

    `records.py` implements it; it imports this file, not the reverse.
    """

    @property
    def stage(self) -> str | None: ...
    @property
    def ir(self) -> str | None: ...
    @property
    def sources(self) -> tuple[tuple[str, ...], ...]: ...


@dataclass(frozen=True)
class Html:
    """A fragment that notebooks display."""

    text: str

    def _repr_html_(self) -> str:
        return self.text


def diff_html(before: str, after: str, *, names: tuple[str, str] = ("before", "after")) -> Html:
    """Two texts of IR as one, with removed and added lines marked; two lines are kept around them."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="", n=2))
    shown = [f'<span class="xe-l {_DIFF_CLASSES.get(line[:1], "")}">{escape(line) or " "}</span>' for line in lines[2:]]
    body = f"<pre>{''.join(shown)}</pre>" if shown else '<div class="xe-bar">no difference</div>'
    head = f'<div class="xe-bar"><label>{escape(names[0])} &rarr; {escape(names[1])}</label></div>'
    return Html(f'<div class="xe"><style>{_STYLE}</style>{head}{body}</div>')


def text_html(text: str) -> str:
    """A fragment with plain text."""
    return (
        f'<div class="xe"><style>{_STYLE}</style><pre>{"".join(_line(line) for line in text.splitlines())}</pre></div>'
    )


def _line(line: str) -> str:
    return f'<span class="xe-l">{escape(line) or " "}</span>'


def trace_html(name: str, steps: Sequence[Listed]) -> str:
    """A fragment with every recorded stage of a trace; for one without IR, a sentence that says so."""
    stages = [step for step in steps if step.stage and step.stage != "hlo" and step.ir is not None]
    source = next((step for step in steps if step.stage == "hlo" and step.ir is not None), None)
    if not stages:
        return f"<p>Trace of {escape(name)}: recorded without IR.</p>"
    digest = hashlib.sha256("".join(step.ir or "" for step in stages).encode()).hexdigest()
    key = f"xe-{digest[:10]}"
    numbers = _numbers(([source] if source else []) + stages)
    rules = [
        *(f"#{key}:has(.{key}-{n}:hover) .{key}-{n} {{ background:var(--xe-lit); }}" for n in numbers.values()),
        *(f"#{key}-{n}:checked ~ .xe-panels .xe-p{n} {{ display:block; }}" for n in range(len(stages))),
        *(
            f"#{key}-{n}:checked ~ .xe-bar label[for={key}-{n}] {{ background:var(--xe-lit); }}"
            for n in range(len(stages))
        ),
    ]
    left = ""
    if source:
        left = f'<div class="xe-hlo"><div class="xe-bar"><label>hlo</label></div>{_listing(source, numbers, key)}</div>'
    shown = next((step for step in stages if step.stage != "partition"), stages[0])
    buttons = "".join(
        f'<input type="radio" name="{key}" id="{key}-{n}"{" checked" if step is shown else ""}>'
        for n, step in enumerate(stages)
    )
    labels = "".join(f'<label for="{key}-{n}">{escape(step.stage or "")}</label>' for n, step in enumerate(stages))
    panels = "".join(
        f'<div class="xe-panel xe-p{n}">{_listing(step, numbers, key)}</div>' for n, step in enumerate(stages)
    )
    return (
        f'<div class="xe" id="{key}"><style>{_STYLE}{"".join(rules)}</style><div class="xe-body">{left}'
        f'<div class="xe-stages">{buttons}<div class="xe-bar">{labels}</div>'
        f'<div class="xe-panels">{panels}</div></div></div></div>'
    )


def highlighted_lines(step: Listed) -> list[str]:
    """The lines of the step's IR as HTML, coloured by classes of Pygments."""
    formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True)
    lines = highlight(step.ir or "", lexer_for(step.stage or ""), formatter).split("\n")
    return lines[:-1] if lines and not lines[-1] else lines


def _numbers(steps: list[Listed]) -> dict[str, int]:
    """A number for each HLO instruction that at least one line comes from."""
    names = dict.fromkeys(name for step in steps for names in step.sources for name in names)
    return {name: number for number, name in enumerate(names)}


def _listing(step: Listed, numbers: dict[str, int], key: str) -> str:
    sources = step.sources or ((),) * (step.ir or "").count("\n")
    lines = list[str]()
    for number, line in enumerate(highlighted_lines(step)):
        names = sources[number] if number < len(sources) else ()
        classes = " ".join(["xe-l", *(f"{key}-{numbers[name]}" for name in names)])
        title = f' title="{escape(", ".join(names), quote=True)}"' if names else ""
        lines.append(f'<span class="{classes}"{title}>{line or " "}</span>')
    return f"<pre>{''.join(lines)}</pre>"
