"""Headless Chromium, which chromedriver controls by the WebDriver protocol: for tests of pages, and for their pictures.

    with browser() as chromium:
        chromium.open(address)
        chromium.wait("document.body.dataset.ready")

Source: https://www.w3.org/TR/webdriver2/#endpoints.
"""

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 1280, 680
READY_SECONDS = 20
MISSING = ", ".join(name for name in ("chromium", "chromedriver") if shutil.which(name) is None)
"""The programs that are not installed."""


class Browser:
    """Chromium, by WebDriver's commands."""

    def __init__(self, address: str, width: int, height: int) -> None:
        self.address = f"{address}/session"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu"]
        of_chromium = {
            "args": arguments,
            "binary": shutil.which("chromium"),
        }  # chromedriver looks in the system's folders alone
        options = {"alwaysMatch": {"goog:chromeOptions": of_chromium}}
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
        made = Browser(f"http://localhost:{said.split()[-1].rstrip('.')}", width, height)
        try:
            yield made
        finally:  # Chromium would outlive a driver that only ends
            urllib.request.urlopen(urllib.request.Request(made.address, method="DELETE")).close()
    finally:
        driver.terminate()
        driver.wait()
