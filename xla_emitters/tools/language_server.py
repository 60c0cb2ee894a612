"""The editor's server: diagnostics, definitions, hover, symbols and completion for HLO text, StableHLO and a kernel's IR.

    diagnostics   the located errors of the compiler, from the text to PTX, in a process with `serve`'s limits
    hover         shape, layout, memory, index map of each operand; the kernel's expected time once the text was saved or opened
    the rest      from the text alone (`explore/text_index`), so that a text with a fault has it too

It speaks the Language Server Protocol on standard input and output. pygls (the extra [lsp]) does so.
Source: https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from xla_emitters.explore.hover import Completion, Described, completions
from xla_emitters.explore.text_index import Definition, TextIndex
from xla_emitters.support.extras import installed
from xla_emitters.tools.served import Answerer, Asked

if TYPE_CHECKING:
    from xla_emitters.explore.page.data import Costs

WAIT_SECONDS = 0.3
"""Without a change, before a text is compiled."""


@dataclass
class Document:
    """A text that is open in the editor.

    read    the last version without a fault
    prices  kernel -> its expected time
    """

    uri: str
    version: int
    text: str
    index: TextIndex = field(init=False)
    read: Described | None = None
    prices: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.renew(self.version, self.text)

    def renew(self, version: int, text: str) -> None:
        """Another version of the text."""
        self.version, self.text, self.index = version, text, TextIndex(text)
        try:
            self.read = Described(text, self.name, self.index)
        except Exception:  # also for a bug of ours: the compiler's process says what is wrong
            pass

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def name(self) -> str:
        return PurePath(unquote(urlsplit(self.uri).path)).name or "text"

    def hover(self, line: int, column: int) -> str:
        """Markdown about the name at a place, or about the instruction of its line; "" where there is nothing to say."""
        use = self.index.name_at(line, column)
        symbol = (self.index.definition(use) if use else None) or self.index.of_line(line)
        if symbol is None:
            return ""
        if symbol.scope < 0:
            return (
                f"{symbol.detail} {symbol.kind} `{symbol.name}`, lines {symbol.line + 1} to {symbol.last + 1}".strip()
            )
        return self.read.of(symbol.name, symbol.line, self.prices) if self.read else ""


class Diagnoser:
    """Compiles texts in a process of their own, the newest version of each, after a pause in typing.

    publish  is called with a document and its errors, as `served.answer` has them, from another thread
    """

    def __init__(self, answer: Any, publish: Any) -> None:
        self._answer, self._publish = answer, publish
        self._waiting = dict[str, tuple[Document, int, bool]]()
        self._changed, self._is_ended = threading.Condition(), False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def ask(self, document: Document, *, priced: bool) -> None:
        """Asks for the errors of the document's text as it is now; `priced`: for its prices, too."""
        with self._changed:
            before = self._waiting.get(document.uri)
            self._waiting[document.uri] = (document, document.version, priced or bool(before and before[2]))
            self._changed.notify()

    def end(self) -> None:
        with self._changed:
            self._is_ended = True
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_ended)
                if self._is_ended:
                    return
                self._changed.wait_for(lambda: self._is_ended, WAIT_SECONDS)
                _, (document, version, priced) = self._waiting.popitem()
            found = self._answer(Asked(document.name, document.text))
            if document.version != version:
                continue
            self._publish(document, found.get("errors", []))
            if priced and "errors" not in found and not document.index.is_mlir:
                judged = self._answer(Asked(document.name, document.text, part="first"))
                document.prices = _prices(judged.get("costs") or {})


def _prices(rows: Costs) -> dict[str, str]:
    costs = {name: {row[0]: row[1] for row in each} for name, each in rows.items()}
    return {
        name: f"{cost['expected time']} on {cost.get('target', 'the target')}"
        for name, cost in costs.items()
        if "expected time" in cost
    }


_KINDS = {
    "opcode": "Function",
    "attribute": "Property",
    "instruction": "Variable",
    "value": "Variable",
    "computation": "Class",
    "function": "Function",
}
"""Kind of a definition or a completion -> the protocol's kind of a symbol and of a completion."""


def make_server(answerer: Answerer) -> Any:
    """A `pygls` server. raises ToolError where pygls is not installed"""
    with installed("pygls", "lsp", extras="lsp"):
        lsp, pygls = import_module("lsprotocol.types"), import_module("pygls.workspace")
        server: Any = import_module("pygls.lsp.server").LanguageServer("xla-emitters", version("xla-emitters"))
    documents = dict[str, Document]()

    def codec() -> Any:
        """Between characters and what the editor counts: units of UTF-16, unless it asked for others."""
        return pygls.PositionCodec(server.workspace.position_encoding)

    def span(document: Document, line: int, start: int, end: int, last: int | None = None) -> Any:
        found = lsp.Range(lsp.Position(line, start), lsp.Position(line if last is None else last, end))
        return codec().range_to_client_units(document.lines, found)

    def location(document: Document, symbol: Any) -> Any:
        return lsp.Location(document.uri, span(document, symbol.line, symbol.start, symbol.end))

    def publish(document: Document, errors: list[dict[str, Any]]) -> None:
        found = list[Any]()
        for error in errors:
            line = min(max(0, error.get("line", 1) - 1), len(document.lines) - 1)
            start = max(0, error.get("column", 1) - 1)
            word = document.index.name_at(line, start)
            end = word.end if word and word.start <= start else start + 1
            more = [*error["details"], *([f"help: {error['help']}"] if error["help"] else [])]
            message = "\n".join([error["message"], *more])
            found.append(
                lsp.Diagnostic(
                    span(document, line, start, end), message, lsp.DiagnosticSeverity.Error, source="xla-emitters"
                )
            )
        params = lsp.PublishDiagnosticsParams(document.uri, found, document.version)
        server.text_document_publish_diagnostics(params)

    diagnoser = Diagnoser(answerer, publish)

    def document_of(params: Any) -> Document:
        """The document; for an editor that asks about one after it was closed, an empty one."""
        uri = params.text_document.uri
        return documents.get(uri) or Document(uri, 0, "")

    def of(params: Any) -> tuple[Document, Any]:
        document = document_of(params)
        return document, codec().position_from_client_units(document.lines, params.position)

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: Any) -> None:
        given = params.text_document
        documents[given.uri] = Document(given.uri, given.version, given.text)
        diagnoser.ask(documents[given.uri], priced=True)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: Any) -> None:
        document = document_of(params)
        text = server.workspace.get_text_document(document.uri).source
        document.renew(params.text_document.version, text)
        diagnoser.ask(document, priced=False)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: Any) -> None:
        diagnoser.ask(document_of(params), priced=True)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: Any) -> None:
        documents.pop(params.text_document.uri, None)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: Any) -> Any:
        document, at = of(params)
        use = document.index.name_at(at.line, at.character)
        symbol = document.index.definition(use) if use else None
        return location(document, symbol) if symbol else None

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: Any) -> Any:
        document, at = of(params)
        use = document.index.name_at(at.line, at.character)
        symbol = document.index.definition(use) if use else None
        return [location(document, each) for each in document.index.uses(symbol)] if symbol else None

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: Any) -> Any:
        document, at = of(params)
        text = document.hover(at.line, at.character)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if text else None

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: Any) -> Any:
        document = document_of(params)
        index, spanned = document.index, partial(span, document)
        inside = dict[int, list[Any]]()
        for each in index.symbols:
            if each.scope >= 0:
                inside.setdefault(each.scope, []).append(_symbol(lsp, spanned, each))
        return [_symbol(lsp, spanned, each, inside.get(number, ())) for number, each in enumerate(index.scopes)]

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["%", "@", ".", " "]))
    def completion(params: Any) -> Any:
        document, at = of(params)
        line = document.lines[int(at.line)][: int(at.character)]
        return lsp.CompletionList(False, [_item(lsp, each) for each in completions(line, int(at.line), document.index)])

    @server.feature(lsp.SHUTDOWN)
    def shutdown(*_: Any) -> None:
        diagnoser.end()
        answerer.end()

    return server


def _symbol(lsp: Any, span: Any, symbol: Definition, children: Any = ()) -> Any:
    kind = getattr(lsp.SymbolKind, _KINDS[symbol.kind])
    name = span(symbol.line, symbol.start, symbol.end)
    whole = span(symbol.line, 0, symbol.end, None) if symbol.scope >= 0 else span(symbol.line, 0, 1, symbol.last)
    return lsp.DocumentSymbol(symbol.name, kind, whole, name, symbol.detail, children=list(children))


def _item(lsp: Any, completion: Completion) -> Any:
    kind = getattr(lsp.CompletionItemKind, _KINDS[completion.kind])
    return lsp.CompletionItem(completion.word, kind=kind, detail=completion.detail or completion.kind)
