"""The server of `serve`: a page that recompiles what is typed into it, and what is saved to the files that it shows.

    GET  /              the page: the views of `show`, and an editor
    GET  /files         {"files": ["gelu.hlo", ...]}: what may be opened
    GET  /file?name=    {"text": ...}
    GET  /changes       server-sent events: the name of a file when it was saved
    POST /compile       {"name", "text", "sizes", "replaced", "part", "rewrites"} -> the data of a page, or errors with places (`served`)

Requests from pages of other sites are refused: the name that the browser asked for must be the server's own, and a page that sends a text
must be this one. Served beyond this machine, every request needs the token that is printed at the start. No file is written.
Source: Server-sent events, https://html.spec.whatwg.org/multipage/server-sent-events.html.
"""

from __future__ import annotations

import hmac
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from xla_emitters.errors import UsageError
from xla_emitters.text.binary.reading import text_of
from xla_emitters.tools.served import Asked

MOST_BYTES = 64 << 20
"""Of a text that is sent."""
POLL_SECONDS = 0.25
QUIET_SECONDS = 10.0
"""After so long without a change the stream says something, so that a closed one is noticed."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PATTERNS = ("*.hlo", "*.mlir", "*.stablehlo", "*after_optimizations.txt")


def files_of(source: Path) -> dict[str, Path]:
    """Name on the page -> file: the file itself, or those in a directory and below. raises UsageError where there are none"""
    if source.is_file():
        return {source.name: source}
    found = sorted({path for pattern in PATTERNS for path in source.rglob(pattern) if path.is_file()})
    if not found:
        raise UsageError(f"nothing to serve in {source}", stage="serve", help=f"files named {', '.join(PATTERNS)}")
    return {str(path.relative_to(source)): path for path in found}


class PageServer(ThreadingHTTPServer):
    """See the head of the file.

    page     its HTML
    files    those that may be opened, by their names on the page
    answer   compiles
    token    that every request must have; "": none
    raises   UsageError where the address cannot be used
    """

    daemon_threads = True
    request_queue_size = 128  # connections that wait; beyond the library's 5 some are reset

    def __init__(
        self,
        host: str,
        port: int,
        page: str,
        files: dict[str, Path],
        answer: Callable[[Asked], dict[str, Any]],
        token: str = "",
    ) -> None:
        self.page, self.files, self.answer, self.token, self.host = page, files, answer, token, host
        self.is_ended = False
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(f"cannot serve at {host}:{port}: {error}", stage="serve", help="--port 0: any") from error

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a browser that went away."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """To open in a browser."""
        token = f"?token={self.token}" if self.token else ""
        return f"http://{self.host}:{self.server_address[1]}/{token}"

    def is_own(self, name: str) -> bool:
        """Whether a browser that asks for this `host:port` means this server, and not a name that somebody points here."""
        host = urlsplit(f"//{name}").hostname or ""
        return bool(self.token) or host in LOOPBACK or host == self.host


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def own(self) -> PageServer:
        return cast(PageServer, self.server)

    def do_GET(self) -> None:
        self._answered(
            {"/": self._send_page, "/files": self._send_files, "/file": self._send_file, "/changes": self._changes}
        )

    def do_POST(self) -> None:
        self._answered({"/compile": self._compile})

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
        """Nothing: the page shows what happens."""

    def _answered(self, known: dict[str, Callable[[], None]]) -> None:
        try:
            try:
                self._refuse_others()
                send = known.get(urlsplit(self.path).path)
            except ValueError as error:
                raise _Refused(HTTPStatus.BAD_REQUEST, f"that is no address: {error}") from error
            if send is None:
                raise _Refused(HTTPStatus.NOT_FOUND, "there is no such page")
            send()
        except _Refused as refused:
            self.close_connection = True  # a body that was sent is not read
            self._send({"errors": [{"message": str(refused)}]}, refused.status)

    def _refuse_others(self) -> None:
        """raises _Refused for a request that is not from this server's own page, or has no token"""
        server, origin = self.own, self.headers.get("Origin")
        if not server.is_own(self.headers.get("Host", "")):
            raise _Refused(HTTPStatus.FORBIDDEN, "this server has another name")
        if origin is not None and urlsplit(origin).netloc != self.headers.get("Host"):
            raise _Refused(HTTPStatus.FORBIDDEN, "another page sent this")
        given = self.headers.get("X-Token") or self._query("token")
        if server.token and not hmac.compare_digest(given.encode(), server.token.encode()):
            raise _Refused(HTTPStatus.FORBIDDEN, "the token is missing; the server printed an address with it")

    def _query(self, name: str) -> str:
        return parse_qs(urlsplit(self.path).query).get(name, [""])[0]

    def _send_page(self) -> None:
        self._send_bytes(self.own.page.encode(), "text/html; charset=utf-8")

    def _send_files(self) -> None:
        self._send({"files": [*self.own.files]})

    def _send_file(self) -> None:
        name = self._query("name")
        if (path := self.own.files.get(name)) is None:
            raise _Refused(HTTPStatus.NOT_FOUND, f"no file '{name}' is served")
        try:
            text, _ = text_of(path.read_bytes(), name)
        except Exception as error:  # it was removed, or is no text: the page says so
            raise _Refused(HTTPStatus.NOT_FOUND, getattr(error, "message", None) or str(error)) from error
        self._send({"text": text})

    def _compile(self) -> None:
        if not (self.headers.get("Content-Type") or "").startswith("application/json"):
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a text is sent as JSON")  # forms of other pages cannot
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a text has at most {MOST_BYTES} bytes")
        try:
            asked = _asked(json.loads(self.rfile.read(int(length))))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, "that is not what the page sends") from error
        self._send(self.own.answer(asked))

    def _changes(self) -> None:
        """Sends the names of files that were saved, until the browser goes away."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.close_connection = True
        known, quiet = self._saved(), time.monotonic()
        while not self.own.is_ended:
            time.sleep(POLL_SECONDS)
            now = self._saved()
            changed = [name for name, when in now.items() if known.get(name) != when]
            known = now
            if changed or time.monotonic() - quiet > QUIET_SECONDS:
                self.wfile.write(
                    "".join(f"data: {json.dumps(name)}\n\n" for name in changed).encode() or b": quiet\n\n"
                )
                self.wfile.flush()
                quiet = time.monotonic()

    def _saved(self) -> dict[str, int]:
        found = dict[str, int]()
        for name, path in self.own.files.items():
            with suppress(OSError):  # an editor that replaces a file removes it for a moment
                found[name] = path.stat().st_mtime_ns
        return found

    def _send(self, data: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send_bytes(json.dumps(data, separators=(",", ":")).encode(), "application/json", status)

    def _send_bytes(self, data: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(data)


def _asked(data: Any) -> Asked:
    """The request that a page sent. raises ValueError, TypeError, KeyError, AttributeError for other data"""
    replaced = [(each["stage"], each["text"]) for each in data.get("replaced", ())]
    part = data.get("part", "page")
    texts = [data["name"], data["text"], data.get("sizes", ""), part, *(part for each in replaced for part in each)]
    if not all(isinstance(each, str) for each in texts):
        raise TypeError("texts are strings")
    return Asked(texts[0], texts[1], texts[2], replaced, part, bool(data.get("rewrites")))
