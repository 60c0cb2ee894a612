"""`serve`: what is sent is compiled, priced and checked; other pages are refused; in Chromium a fault shows its diff and its thread."""

import http.client
import json
import multiprocessing
import socket
import struct
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import MISSING, browser
from in_process import messages, written

from xla_emitters.explore.page.write import served_html
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import Program
from xla_emitters.tools import page_index
from xla_emitters.tools.page_server import PageServer, files_of
from xla_emitters.tools.served import Answerer, Asked, answer

HLO = """HloModule m
%fused (p: f32[512]) -> f32[512] {
  %p = f32[512]{0} parameter(0)
  %c = f32[] constant(3)
  %b = f32[512]{0} broadcast(%c), dimensions={}
  ROOT %m = f32[512]{0} multiply(%p, %b)
}
ENTRY %main (p: f32[512]) -> f32[512] {
  %p = f32[512]{0} parameter(0)
  ROOT %fusion = f32[512]{0} fusion(%p), kind=kLoop, calls=%fused
}
"""
PROGRAM = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.sine %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""

FOR_DEVICES = """module @m attributes {mhlo.num_replicas = 4 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %x : tensor<4xf32>
    %1 = "stablehlo.collective_permute"(%0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> :
        (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
"""


@pytest.fixture(autouse=True)
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of a program are compiled here: other processes would start an LLVM each."""
    monkeypatch.setattr(page_index, "thread_count", lambda: 1)


@cache
def judged_hlo() -> dict[str, Any]:
    """The whole answer to the text of HLO."""
    return answer(Asked("m.hlo", HLO, part="judged"), CompileOptions())


@contextmanager
def served(source: Path, ask: Any, token: str = "") -> Generator[PageServer]:
    with PageServer("127.0.0.1", 0, served_html("h200"), files_of(source), ask, token) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.is_ended = True
            server.shutdown()
            thread.join()


def asked(server: PageServer, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """The status, and the JSON or text of the answer."""
    host, port = str(server.server_address[0]), int(server.server_address[1])
    connection = http.client.HTTPConnection(host, port, timeout=60)
    given = {"Content-Type": "application/json"} if body is not None else {}
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("GET" if body is None else "POST", path, sent, given | headers)
    found = connection.getresponse()
    text = found.read().decode()
    connection.close()
    return found.status, json.loads(text) if "json" in (found.headers["Content-Type"] or "") else text


def test_a_program_for_devices_is_taken_as_run_takes_it() -> None:
    """StableHLO that exchanges arrays itself, which each device runs."""
    found = answer(Asked("m.mlir", FOR_DEVICES, part="judged"), CompileOptions())
    assert found["index"]["verdict"]["ok"]
    assert "4 devices" in found["index"]["verdict"]["summary"]
    unknown = "stablehlo.custom_call @unknown(%x) : (tensor<4xf32>) ->"
    wrong = FOR_DEVICES.replace("stablehlo.negate %x :", unknown)
    (error,) = answer(Asked("m.mlir", wrong), CompileOptions())["errors"]
    assert "unknown" in error["message"]
    assert "line" not in error  # it is about a line of the module that was made of the text


def test_a_text_becomes_the_data_of_its_page() -> None:
    found = judged_hlo()
    index, (unit,) = found["index"], found["index"]["units"]
    assert index["verdict"]["ok"]
    assert unit["launch"]["block"] == (128, 1, 1)
    assert found["chunks"][unit["steps"][0]["text"]].startswith("HloModule m")
    program = answer(Asked("m.mlir", PROGRAM, sizes="d0=64", part="judged"), CompileOptions())
    assert program["index"]["verdict"]["ok"]
    flat = next(step["text"] for step in unit["steps"] if step["stage"] == "flat")
    kernel = answer(Asked("flat.mlir", found["chunks"][flat], part="judged"), CompileOptions())
    assert kernel["index"]["verdict"]["summary"].endswith("512 of 512 elements as the IR that was given")


def test_a_replaced_kernel_is_judged_and_its_thread_named() -> None:
    found = judged_hlo()
    (step,) = (step for step in found["index"]["units"][0]["steps"] if step["stage"] == "scf")
    wrong = found["chunks"][step["text"]].replace("3.000000e+00", "4.000000e+00")
    judged = answer(Asked("m.hlo", HLO, replaced=[("scf", wrong)], part="judged"), CompileOptions())
    assert not judged["index"]["verdict"]["ok"]
    culprit = judged["index"]["culprit"]
    assert culprit["thread"]["block"] == 0
    assert "xla-replace-kernel" in culprit["lines"][0]


def test_the_price_and_one_stage_come_first() -> None:
    """The price is that of `cost`; a kernel edited wrongly is found; the page of a program has its stages alone until all is judged."""
    first = answer(Asked("m.hlo", HLO, part="first"), CompileOptions())
    judged = judged_hlo()
    (unit,) = judged["index"]["units"]
    if unit["cost"]:
        assert first["costs"] == {"fusion": unit["cost"]}
        assert dict(first["costs"]["fusion"])["expected time"].endswith(" us")
    assert first["verdict"]["ok"]
    assert "llvm-dialect: 512 of 512 elements" in first["verdict"]["summary"]
    scf = next(step["text"] for step in unit["steps"] if step["stage"] == "scf")
    wrong = judged["chunks"][scf].replace("3.000000e+00", "4.000000e+00")
    found = answer(Asked("m.hlo", HLO, replaced=[("scf", wrong)], part="first"), CompileOptions())
    assert not found["verdict"]["ok"]
    assert found["verdict"]["summary"].startswith("llvm-dialect:")
    program = answer(Asked("m.mlir", PROGRAM, sizes="d0=64", part="first"), CompileOptions())
    assert "llvm-dialect: 64 of 64 elements" in program["verdict"]["summary"]
    nothing = answer(Asked("m.mlir", PROGRAM, part="first"), CompileOptions())
    assert (nothing["costs"], nothing["verdict"]) == (None, None)
    for part, is_short in (("page", True), ("judged", False)):
        program = answer(Asked("m.mlir", PROGRAM, sizes="d0=64", part=part), CompileOptions())
        units = program["index"]["units"]
        assert {step["stage"] for step in units[0]["steps"] if step["text"] is not None} >= {"hlo", "fused", "kernels"}
        assert all(unit["short"] for unit in units) == is_short


def test_wrong_numbers_of_a_program_are_said_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Program, "run", lambda *_: [np.full(64, 0.5, "float32")])
    found = answer(Asked("m.mlir", PROGRAM, sizes="d0=64", part="first"), CompileOptions())
    assert not found["verdict"]["ok"]
    assert found["verdict"]["summary"].startswith("llvm-dialect: ")


@pytest.mark.parametrize(
    "text", ["", "HloModul", "module {", HLO.replace("multiply", "multiplies"), "\0" * 10, "func.func @f() {"]
)
def test_wrong_texts_are_messages(text: str) -> None:
    (first, *_) = answer(Asked("m.hlo", text, part="judged"), CompileOptions())["errors"]
    assert first["message"]
    assert "a bug of ours" not in first["message"]
    if "multiplies" in text:
        assert first["line"] == 6


def test_requests_of_other_pages_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(HLO)
    (tmp_path / "secret.txt").write_text("no")
    got = list[Asked]()

    def ask(given: Asked) -> dict[str, Any]:
        got.append(given)
        return {"errors": []}

    body = {"name": "a.hlo", "text": HLO}
    with served(tmp_path, ask) as server:
        own = f"127.0.0.1:{server.server_address[1]}"
        assert asked(server, "/files") == (200, {"files": ["a.hlo"]})
        assert asked(server, "/file?name=a.hlo") == (200, {"text": HLO})
        assert asked(server, "/file?name=secret.txt")[0] == 404
        assert asked(server, "/file?name=../a.hlo")[0] == 404
        assert asked(server, "/etc/passwd")[0] == 404
        assert asked(server, "/compile", body, Origin=f"http://{own}")[0] == 200
        assert asked(server, "/compile", body, Origin="http://example.org")[0] == 403
        assert asked(server, "/files", Host="example.org:80")[0] == 403
        assert asked(server, "/compile", body, **{"Content-Type": "text/plain"})[0] == 415
        assert asked(server, "/compile", b"{")[0] == 400
        assert asked(server, "/compile", {"name": 1, "text": []})[0] == 400
        assert asked(server, "/compile", body, **{"Content-Length": "99999999999"})[0] == 413
        assert "<!doctype html>" in asked(server, "/")[1]
        assert asked(server, "/compile", b"[" * 100_000)[0] == 400
        assert asked(server, "/compile", body, **{"Content-Length": "9" * 5000})[0] == 413
        assert asked(server, "/files", Host="[")[0] == 400
        assert asked(server, "/compile", body, Origin="http://[")[0] == 400
    assert len(got) == 1
    with served(tmp_path, ask, "word") as server:
        assert server.address.endswith("/?token=word")
        assert asked(server, "/files")[0] == 403
        assert asked(server, "/files?token=wrong")[0] == 403
        assert asked(server, "/files?token=word")[0] == 200
        assert asked(server, "/files", **{"X-Token": "word"})[0] == 200


def test_a_browser_that_goes_away_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.hlo").write_text(HLO)
    with served(tmp_path, lambda _: {}) as server:
        for request in (b"GET /fi", b"GET /file?name=a.hlo HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed by a reset
                connection.sendall(request)
        assert asked(server, "/files")[0] == 200
    assert capsys.readouterr().err == ""


def test_connections_wait_for_their_turn(tmp_path: Path) -> None:
    """Many at once, while none is accepted."""
    (tmp_path / "a.hlo").write_text(HLO)
    with PageServer("127.0.0.1", 0, "", files_of(tmp_path), lambda _: {}) as server, ExitStack() as opened:
        for _ in range(50):
            opened.enter_context(socket.create_connection(("127.0.0.1", server.server_port), timeout=5))


def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    assert "there is no" in messages(2, "serve", tmp_path / "none.hlo")
    assert "nothing to serve in" in messages(2, "serve", tmp_path)


def test_an_answer_that_is_late_is_ended() -> None:
    """The next one is answered as if nothing had been."""
    answerer = Answerer(CompileOptions(), 0.02, None)
    try:
        assert "took longer than 0.02 s" in answerer(Asked("m.hlo", HLO))["errors"][0]["message"]
        assert "took longer" in answerer(Asked("m.hlo", HLO))["errors"][0]["message"]
    finally:
        answerer.end()


def test_no_process_is_started_after_the_end() -> None:
    """Not even for an answer that was waited for."""
    answerer, before = Answerer(CompileOptions(), 60.0, None), len(multiprocessing.active_children())
    answerer.end()
    assert "ended" in answerer(Asked("m.hlo", HLO))["errors"][0]["message"]
    assert len(multiprocessing.active_children()) == before - 1


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {MISSING}")
@pytest.mark.long  # a browser, and a dozen compilations
def test_a_person_types_sees_the_diff_and_the_wrong_thread(tmp_path: Path) -> None:
    path = written(tmp_path / "m.hlo", HLO.replace("HloModule m", "// its first line may be left out"))
    answerer = Answerer(CompileOptions(), 60.0, None)
    said = "document.querySelector('#said')?.textContent"
    is_done = f"/^compiled, priced and checked.*numbers ok/.test({said})"
    with served(path, answerer) as server, browser() as chromium:
        chromium.open(server.address)
        chromium.wait(f"/^priced, and one stage checked.*numbers ok.*llvm-dialect: 512 of 512/.test({said})")
        chromium.wait(is_done)
        hidden = (
            "return ['what', 'sizes'].map((id) => getComputedStyle(document.getElementById(id)).display === 'none')"
        )
        assert chromium.run(hidden) == [False, True]
        # A fault that is typed has its place.
        chromium.run(type_into(HLO.replace("multiply(", "multiplies(")))
        chromium.wait(f"({said} || '').startsWith('6:')")
        # Another constant is a change, which Diff shows beside the text before.
        chromium.run(type_into(HLO.replace("constant(3)", "constant(5)")))
        chromium.wait(is_done)
        chromium.run("document.querySelector('[data-view=diff]').click()")
        chromium.wait("document.querySelector('.l.come')")
        assert chromium.run("return document.querySelector('#old').checked")
        assert "5" in chromium.run("return document.querySelector('.l.come').textContent")
        # Rewrites are recorded when they are looked at.
        assert chromium.run("return document.querySelector('[data-view=rewrites].empty') !== null")
        chromium.run("document.querySelector('[data-view=rewrites]').click()")
        chromium.wait("document.querySelector('.place')?.textContent.startsWith('rewrite 1 of ')")
        chromium.wait(is_done)
        # A kernel that is edited by hand, wrongly: the pass and the thread.
        chromium.run("const what = document.querySelector('#what'); what.value = 'scf'; what.onchange({target: what});")
        chromium.wait("document.querySelector('#text').value.includes('func.func')")
        chromium.run(type_into(None, "5.000000e+00", "7.000000e+00"))
        chromium.wait("document.querySelector('#wrong')")
        assert chromium.run("return document.querySelector('#wrong').textContent") == "thread 0 of block 0"
        chromium.run("document.querySelector('#wrong').click()")
        chromium.wait("document.querySelector('.lane.lit, .cell.lit')")
        # The file is saved by another program: the page shows it.
        path.write_text(HLO.replace("multiply(", "add("))
        chromium.wait("document.querySelector('#text').value.includes('add(')")
        chromium.wait(is_done)
    answerer.end()


def type_into(text: str | None, old: str = "", new: str = "") -> str:
    """A script that puts a text into the editor, or replaces a part of it, as typing does."""
    value = json.dumps(text) if text is not None else f"box.value.replace({json.dumps(old)}, {json.dumps(new)})"
    return f"const box = document.querySelector('#text'); box.value = {value}; box.oninput();"
