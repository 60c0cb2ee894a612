"""Makes the pictures of the page that the documentation shows: `make pictures` (or this file with names) writes
docs/pictures/NAME.png.

Each is a screenshot of a page that `xla-emitters` writes, in headless Chromium.
`compare` needs the extra `[xla]`. Look at the pictures before they are committed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from xla_emitters.tools.main import main as xla_emitters

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from chromium import browser  # noqa: E402 (its directory is on the path now)

FROM_SCF_TO_FLAT = """for (const [number, stage] of [[0, 'scf ('], [1, 'flat (']]) {
  const box = document.querySelectorAll('#view select')[number];
  box.value = [...box.options].find((option) => option.text.startsWith(stage)).value;
  box.onchange();
}"""
WRITES_OF_SHARED_MEMORY = """const box = document.querySelector('#view select');
box.value = [...box.options].findIndex((option) => option.text.includes('@shared'));
box.onchange();"""
PICTURES: dict[str, tuple[list[str], str, str]] = {
    "show_code": (["show", "examples/gelu.hlo", "--check"], "view=code&line=ptx:37", ""),
    "show_diff": (["show", "examples/gelu.hlo"], "view=diff", FROM_SCF_TO_FLAT),
    "show_threads": (["show", "examples/transpose.hlo"], "view=threads", WRITES_OF_SHARED_MEMORY),
    "show_cost": (["show", "examples/gelu.hlo"], "view=cost", ""),
    "compare": (["compare", "examples/gelu.hlo"], "view=xla", ""),
}
"""Name -> the command that writes the page, the page's address after `#`, and a script that makes choices on it."""


def make(names: list[str]) -> None:
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as directory, browser() as chromium:
        for name in names:
            command, address, script = PICTURES[name]
            page = Path(directory, f"{name}.html")
            if code := xla_emitters([*command, "-o", str(page)]):
                sys.exit(code)
            chromium.open(f"{page.as_uri()}#{address}")
            chromium.wait("document.body.dataset.ready")
            chromium.run(script)
            time.sleep(0.5)  # the texts of the chosen view are unpacked
            chromium.picture(ROOT / "docs" / "pictures" / f"{name}.png")


if __name__ == "__main__":
    make(sys.argv[1:] or list(PICTURES))
