"""`lsp` over the protocol, as an editor speaks it: a fault has its place, a name its definition, an instruction its shape and price."""

import json
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from in_process import messages
from tools_here import SASS, needs

from xla_emitters.errors import ToolError
from xla_emitters.tools import language_server

TEXT = """HloModule m
ENTRY main {
  %x = f32[1024]{0} parameter(0)
  %y = f32[1024]{0} negate(%x)
  ROOT %z = f32[1024]{0} add(%y, %x)
}
"""
URI = "file:///tmp/m.hlo"
PYGLS = pytest.mark.skipif(find_spec("pygls") is None, reason="pygls is not installed (extra [lsp])")


class Editor:
    """Speaks JSON-RPC with a server: https://microsoft.github.io/language-server-protocol, base protocol."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "xla_emitters", "lsp", "--stdio"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0
        self.diagnostics = list[Any]()
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.tell("initialized", {})

    def tell(self, method: str, params: Any, **more: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def read(self) -> Any:
        stream = self.process.stdout
        assert stream is not None
        length = 0
        while line := stream.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message = json.loads(stream.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics.append(message["params"])
        return message

    def ask(self, method: str, params: Any) -> Any:
        self.number += 1
        self.tell(method, params, id=self.number)
        while True:
            message = self.read()
            if message.get("id") == self.number and "method" not in message:
                assert "error" not in message, message
                return message["result"]

    def at(self, method: str, line: int, word: str) -> Any:
        position = {"line": line, "character": TEXT.split("\n")[line].index(word) + 1}
        context = {"includeDeclaration": True} if method == "references" else {"triggerKind": 1}
        return self.ask(
            f"textDocument/{method}", {"textDocument": {"uri": URI}, "position": position, "context": context}
        )

    def diagnosed(self, version: int) -> list[Any]:
        while not any(each["version"] == version for each in self.diagnostics):
            self.read()
        return next(each["diagnostics"] for each in self.diagnostics if each["version"] == version)

    def end(self) -> None:
        self.ask("shutdown", None)
        self.tell("exit", None)
        assert self.process.wait(30) == 0


@PYGLS
def test_an_editor_is_answered() -> None:
    """The text is opened with a fault, so that it is not priced, which takes seconds."""
    editor = Editor()
    wrong = TEXT.replace("%y, %x", "%y, %w")
    opened = {"uri": URI, "languageId": "hlo", "version": 1, "text": wrong}
    editor.tell("textDocument/didOpen", {"textDocument": opened})
    (fault,) = editor.diagnosed(1)
    assert fault["range"]["start"] == {"line": 4, "character": 33}
    assert "'w'" in fault["message"]
    right = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": TEXT}]}
    editor.tell("textDocument/didChange", right)
    assert editor.diagnosed(2) == []
    found = editor.at("definition", 4, "%y")
    assert (found["uri"], found["range"]["start"]) == (URI, {"line": 3, "character": 2})
    places = [
        (each["range"]["start"]["line"], each["range"]["start"]["character"])
        for each in editor.at("references", 2, "%x")
    ]
    assert places == [(2, 2), (3, 27), (4, 33)]
    hover = editor.at("hover", 3, "negate")["contents"]["value"]
    assert "%y = f32[1024] negate" in hover
    assert "f32[1024]: 4.1 kB, row major" in hover
    (entry,) = editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
    assert (entry["name"], [each["name"] for each in entry["children"]]) == ("main", ["x", "y", "z"])
    offered = editor.at("completion", 3, "egate")["items"]
    assert "negate" in [each["label"] for each in offered]
    editor.end()


@PYGLS
def test_columns_are_those_of_utf_16_and_places_may_be_wrong() -> None:
    """Characters beyond 16 bits count as two; a place behind the end, or in a text that is not open, is no failure."""
    editor = Editor()
    text = TEXT.replace("%y = ", "/*\U0001f600*/ %y = ").replace("%y, %x", "/*\U0001f600*/ %y, %w")
    editor.tell("textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "hlo", "version": 1, "text": text}})
    (fault,) = editor.diagnosed(1)
    assert fault["range"] == {"start": {"line": 4, "character": 40}, "end": {"line": 4, "character": 42}}
    asked: dict[str, Any] = {"textDocument": {"uri": URI}, "position": {"line": 4, "character": 37}}
    found = editor.ask("textDocument/definition", asked)
    assert found["range"] == {"start": {"line": 3, "character": 9}, "end": {"line": 3, "character": 11}}
    for uri, line in ((URI, 99), ("file:///tmp/closed.hlo", 0)):
        asked = {"textDocument": {"uri": uri}, "position": {"line": line, "character": 3}}
        assert editor.ask("textDocument/completion", asked)["items"] == []
        assert editor.ask("textDocument/hover", asked) is None
    editor.process.terminate()
    assert editor.process.wait(30) == 128 + signal.SIGTERM


@needs(*SASS)
@PYGLS
@pytest.mark.long  # a kernel is priced
def test_hover_has_the_price() -> None:
    editor = Editor()
    editor.tell("textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "hlo", "version": 1, "text": TEXT}})
    hover, end = "", time.monotonic() + 120
    while "kernel main: " not in hover and time.monotonic() < end:
        hover = editor.at("hover", 4, "%z")["contents"]["value"]
    assert hover.endswith(" us on h200")
    editor.end()


def test_without_pygls_it_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(f"no {name}")

    monkeypatch.setattr(language_server, "import_module", missing)
    assert "[lsp]'" in messages(ToolError.exit_code, "lsp")


def test_the_folder_for_editors_has_the_grammars_of_the_lexers() -> None:
    """`python editors/grammars.py` writes them."""
    folder = Path(__file__).parents[3] / "editors"
    done = subprocess.run([sys.executable, folder / "grammars.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
