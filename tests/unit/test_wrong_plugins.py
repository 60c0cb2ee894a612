"""Faults of a plugin are reported as the plugin's: its file and line, no traceback and no report of a bug of ours.

One that cannot be loaded is left out, with a warning; one that fails at work is an error, with exit code 1.
Each row is the module of a plugin whose package names `wrong_plugin:register`; `# here` ends the line that the message must name.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import invalidate_caches
from pathlib import Path

import pytest

from xla_emitters import plugins
from xla_emitters.settings import DISABLE_PLUGINS
from xla_emitters.tools.main import main

pytestmark = pytest.mark.usefixtures("nothing_of_plugins_stays")
ROOT = Path(__file__).parents[2]
NEGATE = "ENTRY f {\n p = f32[8] parameter(0)\n ROOT n = f32[8] negate(p)\n}\n"
CALL = 'ENTRY f {\n p = f32[3] parameter(0)\n ROOT t = f32[3] custom-call(p), custom_call_target="mine"\n}\n'
HYPOT = "ENTRY f {\n p = f32[3] parameter(0)\n ROOT t = f32[3] mine(p, p)\n}\n"
PROGRAM = """module @m {
  func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    %y = stablehlo.negate %x : tensor<?xf32>
    return %y : tensor<?xf32>
  }
}
"""

BASE = """
from dataclasses import dataclass, replace
import xla_emitters as xe
from xdsl.dialects.builtin import ModuleOp
from xla_emitters.device import device
from xla_emitters.emitters.loop import LoopEmitter
from xla_emitters.rewrite.kernel_pass import KernelPass
"""
EMITTER = BASE + "class Mine(LoopEmitter):  # the class\n    name = 'mine'\n"
PASS = BASE + "@dataclass(frozen=True)  # the class\nclass Mine(KernelPass):\n    name = 'mine'\n"


def registering(call: str, before: str = BASE) -> str:
    """A module whose function `register` makes a call."""
    return f"{before}def register():\n    {call}  # here\n"


def an_emitter(method: str, *body: str) -> str:
    """A module that registers an emitter with a method; the message names the class where no line of the body has `# here`."""
    return _with_method(EMITTER, f"{method}(self, view, device)", body, "xe.register_emitter(Mine())")


def a_pass(*body: str, where: str = "after='xla-flatten-tensors'") -> str:
    """A module that registers a pass."""
    return _with_method(PASS, "apply(self, ctx, op)", body, f"xe.register_pass(Mine, {where})")


def _with_method(head: str, method: str, body: tuple[str, ...], call: str) -> str:
    lines = "".join(f"        {line}\n" for line in body)
    text = f"{head}    def {method}:\n{lines}\ndef register():\n    {call}\n"
    return text if "# here" in text else text.replace("# the class", "# here")


def a_call(body: str, given: str = "mine") -> str:
    """A module that registers a library call."""
    return f"{BASE}{body}\ndef register():\n    xe.register_library_call('mine', {given})\n"


@dataclass(frozen=True)
class Wrong:
    """A plugin's module, what is compiled with it, and what the message has besides the place."""

    module: str
    said: str
    text: str = NEGATE
    words: tuple[str, ...] = ("compile", "--stage", "llvm-dialect")
    entry: str = "wrong_plugin:register"


RUN = ("run",)
APPLY = "    def apply(self, ctx, op): pass\n"
RAISES = "op.nothing()  # here"
WRONG = {
    # at import
    "an import that fails": Wrong("import nothing_of_this_name  # here\n", "ModuleNotFoundError"),
    "no Python": Wrong("import os\ndef register(:  # here\n", "SyntaxError"),
    "an exception at import": Wrong("x = 1\ny = 1 // 0  # here\n", "ZeroDivisionError"),
    "an exit at import": Wrong("import sys\nsys.exit(3)  # here\n", "SystemExit"),
    "no such function": Wrong("x = 1  # here\n", "no attribute 'register'"),
    "no such module": Wrong("x = 1\n", "No module named 'right_plugin'", entry="right_plugin:register"),
    "a value in place of a function": Wrong("register = 3  # here\n", "is not a function"),
    "endless recursion at import": Wrong("def f():\n    return f()  # here\nf()\n", "RecursionError"),
    # at registration
    "a function that takes something": Wrong("def register(x):  # here\n    pass\n", "TypeError"),
    "an exception at registration": Wrong("def register():\n    {}['x']  # here\n", "KeyError"),
    "a pass after none": Wrong(
        registering("xe.register_pass(Mine, after='xla-flaten-tensors')", PASS + APPLY),
        "no pass or stage 'xla-flaten-tensors'",
    ),
    "a pass nowhere": Wrong(registering("xe.register_pass(Mine)", PASS), "after= or before="),
    "a pass in no list": Wrong(
        registering("xe.register_pass(Mine, after='flat', of='kernels')", PASS), "no list of passes"
    ),
    "a number in place of a pass": Wrong(registering("xe.register_pass(3, after='flat')"), "not callable"),
    "a function that makes no pass": Wrong(registering("xe.register_pass(lambda o: None, after='flat')"), "not a pass"),
    "a pass without a name": Wrong(
        registering("xe.register_pass(Mine, after='flat')", f"{BASE}class Mine(KernelPass):\n{APPLY}"), "name"
    ),
    "a pass without apply": Wrong(registering("xe.register_pass(Mine, after='flat')", PASS), "abstract"),
    "a pass with an option that nobody gives": Wrong(
        registering("xe.register_pass(Mine, after='flat')", f"{PASS}    size: int\n{APPLY}"), "size"
    ),
    "a name that is taken": Wrong(
        registering("xe.register_emitter(Mine())", EMITTER.replace("'mine'", "'loop'")), "already"
    ),
    "an emitter before none": Wrong(
        registering("xe.register_emitter(Mine(), before='lop')", EMITTER), "no emitter 'lop'"
    ),
    "a class in place of an emitter": Wrong(registering("xe.register_emitter(Mine)", EMITTER), "not an emitter"),
    "an emitter without methods": Wrong(
        registering("xe.register_emitter(Mine())", f"{BASE}class Mine:\n    name = 'mine'\n"), "no emit"
    ),
    "a name in place of a device": Wrong(registering("xe.register_device('h300')"), "not a Device"),
    "a device without cores": Wrong(
        registering("xe.register_device(replace(device('h200'), name='h300', cores=0))"), "cores"
    ),
    "a device of no architecture": Wrong(
        registering("xe.register_device(replace(device('h200'), name='h300', architecture='hopper'))"), "architecture"
    ),
    "a library call that is not a function": Wrong(
        registering("xe.register_library_call('mine', 3)"), "not a function", CALL
    ),
    # an emitter at work
    "applies raises": Wrong(an_emitter("applies", "return view.rots  # here"), "rots"),
    "applies answers with a truth value": Wrong(an_emitter("applies", "return False"), "applies returned bool"),
    "emit raises": Wrong(an_emitter("emit", "raise KeyError('x')  # here"), "KeyError"),
    "emit exits": Wrong(an_emitter("emit", "raise SystemExit(0)  # here"), "SystemExit"),
    "emit never ends": Wrong(an_emitter("emit", "return self.emit(view, device)  # here"), "RecursionError"),
    "emit gives text": Wrong(an_emitter("emit", "return 'module {}'"), "emit returned str"),
    "emit gives nothing to launch": Wrong(an_emitter("emit", "return ModuleOp([])"), "emitter 'mine'"),
    "emit gives IR that does not verify": Wrong(
        an_emitter(
            "emit",
            "module = super().emit(view, device)",
            "next(op for op in module.walk() if op.name == 'func.return').detach()",
            "return module",
        ),
        "does not verify",
    ),
    "partition raises": Wrong(an_emitter("partition", "return 1 / 0  # here"), "ZeroDivisionError"),
    # a pass at work
    "apply raises": Wrong(a_pass(RAISES), "nothing"),
    "apply raises what tools raise": Wrong(a_pass("open('/no/such/file')  # here"), "FileNotFoundError"),
    "apply never ends": Wrong(a_pass("self.apply(ctx, op)  # here"), "RecursionError"),
    "apply leaves IR that does not verify": Wrong(
        a_pass("next(o for o in op.walk() if o.name == 'arith.negf').detach()"), "does not verify"
    ),
    "apply erases the kernel": Wrong(a_pass("[o.detach() for o in list(op.body.ops)]"), "pass 'mine'"),
    "a pass on HLO raises": Wrong(a_pass(RAISES, where="after='xla-fuse-entry', of='graph'"), "nothing"),
    "a pass on a program raises": Wrong(a_pass(RAISES, where="after='graph', of='program'"), "nothing", PROGRAM),
    "a pass on a program's kernels raises": Wrong(
        a_pass(RAISES, where="before='llvm-dialect', of='program-kernel'"), "nothing", PROGRAM
    ),
    # a library call at work
    "a call raises": Wrong(a_call("def mine(call):\n    return [call.operands[7]]  # here\n"), "IndexError", CALL, RUN),
    "a call gives too many results": Wrong(
        a_call("def mine(call):  # here\n    return [*call.operands, *call.operands]\n"),
        "returned float32[3], float32[3], not float32[3]",
        CALL,
        RUN,
    ),
    "a call gives another shape": Wrong(
        a_call("def mine(call):  # here\n    return [call.operands[0][:2]]\n"),
        "returned float32[2], not float32[3]",
        CALL,
        RUN,
    ),
    "a call gives no list": Wrong(a_call("def mine(call):  # here\n    return None\n"), "NoneType", CALL, RUN),
    "a call's configuration raises": Wrong(
        a_call(
            "def mine(call):\n    return call.operands\ndef configured(op):\n    return op.nothing  # here\n",
            "mine, configured",
        ),
        "nothing",
        CALL,
        RUN,
    ),
}


def installed(folder: Path, module: str, group: str, entry: str) -> Path:
    """A package in `folder` as pip leaves it. returns the plugin's file"""
    (folder / "wrong_plugin.py").write_text(module)
    info = folder / "wrong_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nwrong = {entry}\n")
    return folder / "wrong_plugin.py"


def expect_blamed(wrong: Wrong, file: Path, said: str, verdict: str) -> None:
    """verdict  "{place}error: [plugins]" for a plugin at work, "warning: {place}plugin" for one that was left out"""
    assert "Traceback" not in said
    assert "bug in xla_emitters" not in said
    assert wrong.said in said
    lines = [number for number, line in enumerate(wrong.module.splitlines(), 1) if "# here" in line]
    place = rf"{re.escape(str(file))}:{lines[0]}:\d+: " if lines else "(.*: )?"
    assert re.search("^" + verdict.format(place=place), said, re.MULTILINE), said


AT_WORK, LEFT_OUT = r"{place}error: \[plugins\]", "warning: {place}.*; it is left out"


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_the_fault_is_the_plugins(
    wrong: Wrong,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = installed(tmp_path, wrong.module, plugins.PLUGINS, wrong.entry)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    invalidate_caches()
    monkeypatch.delenv(DISABLE_PLUGINS, raising=False)
    given = tmp_path / ("m.mlir" if wrong.text is PROGRAM else "m.hlo")
    given.write_text(wrong.text)
    code = main([wrong.words[0], str(given), *wrong.words[1:]])
    said, at_load = capsys.readouterr().err, bool(plugins._failed)
    assert code == (0 if at_load and wrong.text is NEGATE else 1), said
    expect_blamed(wrong, file, said, LEFT_OUT if at_load else AT_WORK)
    if at_load:
        # Everything else works, and doctor has a row for it.
        main(["doctor"])
        assert re.search(rf"^  absent +wrong +.*{re.escape(wrong.said)}", capsys.readouterr().out, re.MULTILINE)


def test_plugins_can_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The warning about a plugin that cannot be imported says how, once."""
    installed(tmp_path, WRONG["an exception at import"].module, plugins.PLUGINS, "wrong_plugin:register")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    invalidate_caches()
    (tmp_path / "n.hlo").write_text(NEGATE)
    words = ["compile", str(tmp_path / "n.hlo"), "--stage", "scf"]
    monkeypatch.setenv(DISABLE_PLUGINS, "1")
    assert main(words) == 0
    assert "plugin" not in capsys.readouterr().err
    monkeypatch.delenv(DISABLE_PLUGINS)
    assert main(words) == 0
    assert capsys.readouterr().err.count(f"{DISABLE_PLUGINS}=1") == 1


ROW = 'from xla_emitters.functions import RealFunction\nMINE = RealFunction("mine", {})  # here\n'
OF_FUNCTIONS = {
    "a value that is not a function": Wrong("MINE = 3\n", "not a RealFunction"),
    "names that lack": Wrong(ROW.format('"math.hypot", None, "hypot", operands=2'), "opcode, op, libdevice and numpy"),
    "an op of another dialect": Wrong(
        ROW.format('"arith.hypot", "hypot", "hypot", operands=2'), "not an op of the dialect"
    ),
    "another libdevice function for an op": Wrong(
        ROW.format('"math.tanh", "hypot", "hypot", operands=2'), "libdevice of 'math.tanh' is 'tanh', not 'mine'"
    ),
    "a function that NumPy lacks": Wrong(
        ROW.format('"math.hypot", "hypot", "hypo", operands=2'), "NumPy has no 'hypo'"
    ),
    "an import that fails": Wrong("x = 1 // 0  # here\n", "ZeroDivisionError"),
}


def test_wrong_functions_are_the_plugins_faults(tmp_path: Path) -> None:
    """All in one process of its own: the tables of functions are made once."""
    for number, wrong in enumerate(OF_FUNCTIONS.values()):
        (tmp_path / f"wrong_{number}.py").write_text(wrong.module)
    entries = [f"wrong_{number} = wrong_{number}:MINE" for number in range(len(OF_FUNCTIONS))]
    installed(tmp_path, "", plugins.FUNCTIONS, "\n".join(("wrong_plugin:MINE", *entries)))
    (tmp_path / "m.hlo").write_text(HYPOT)
    paths = os.pathsep.join((str(tmp_path), str(ROOT)))
    command = [sys.executable, "-m", "xla_emitters.tools.main", "run", str(tmp_path / "m.hlo")]
    environment = os.environ | {"PYTHONPATH": paths, "XLA_EMITTERS_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, "the text has an op that only the plugin knows"
    for number, wrong in enumerate(OF_FUNCTIONS.values()):
        file = tmp_path / f"wrong_{number}.py"
        (said,) = [line for line in done.stderr.splitlines() if f"'wrong_{number}'" in line and str(file) in line]
        where = wrong if "RealFunction(" not in wrong.module else Wrong(wrong.module.replace("# here", ""), wrong.said)
        expect_blamed(where, file, said, LEFT_OUT)
