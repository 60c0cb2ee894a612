"""Makes the pictures of the page that the documentation shows: `make pictures` (or this file with names) writes
docs/pictures/NAME.png.

Each is a screenshot of a page that `xla-emitters` writes, in headless Chromium, which chromedriver controls by the WebDriver protocol.
`compare` needs the extra `[xla]`. Look at the pictures before they are committed.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from xla_emitters.tools.main import main as xla_emitters

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 1280, 680
READY_SECONDS = 20
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


class Browser:
    """Chromium, by WebDriver's commands: https://www.w3.org/TR/webdriver2/#endpoints."""

    def __init__(self, address: str, width: int, height: int) -> None:
        self.address = f"{address}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu"]
        options = {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}
        self.address += f"/{self.send('', {'capabilities': options})['sessionId']}"
        self.resize(width, height)

    def send(self, command: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.address + command, data) as answer:
            return json.load(answer)["value"]

    def resize(self, width: int, height: int) -> None:
        """Makes the page, without the window's frame, this large: pixels of CSS."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})

    def run(self, script: str) -> Any:
        return self.send("/execute/sync", {"script": script, "args": []})

    def open(self, address: str) -> None:
        self.send("/url", {"url": "about:blank"})
        self.send("/url", {"url": address})

    def wait(self, condition: str) -> None:
        """Until the JavaScript expression is true. raises TimeoutError"""
        end = time.monotonic() + READY_SECONDS
        while not self.run(f"return Boolean({condition})"):
            if time.monotonic() > end:
                raise TimeoutError(condition)
            time.sleep(0.1)

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.send("/screenshot")))


@contextmanager
def browser(width: int = WIDTH, height: int = HEIGHT) -> Generator[Browser]:
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        said = next(line for line in driver.stdout if "successfully on port" in line)
        yield Browser(f"http://localhost:{said.split()[-1].rstrip('.')}", width, height)
    finally:
        driver.terminate()
        driver.wait()


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
