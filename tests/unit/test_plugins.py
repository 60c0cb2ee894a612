"""Plugins: what each call adds, how failures are attributed, what is part of the cache's keys;
a package with entry points, made of the code in docs/plugins.md.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import xla_emitters as xe
from xla_emitters import plugins
from xla_emitters.device import device
from xla_emitters.dialects.completion import own_class
from xla_emitters.emitters.loop import LoopEmitter
from xla_emitters.errors import PluginError, Unsupported, UsageError
from xla_emitters.functions import RealFunction, register_function
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.runtime.bundle.bundle import Case, write_bundle

pytestmark = pytest.mark.usefixtures("nothing_of_plugins_stays")
ROOT = Path(__file__).parents[2]
NEGATE = "ENTRY f { p = f32[8] parameter(0)\n ROOT n = f32[8] negate(p) }"


@dataclass(frozen=True)
class CountOpsPass(KernelPass):
    name = "count-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.remark(op, f"{sum(1 for _ in op.walk())} ops")


@dataclass(frozen=True)
class DividingPass(KernelPass):
    name = "dividing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        1 // 0  # noqa: B018


@dataclass(frozen=True)
class BreakingPass(KernelPass):
    """Leaves a use of what is no longer there."""

    name = "breaking"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        negation = next(inner for inner in op.walk() if inner.name == "arith.negf")
        negation.detach()


class ScalarEmitter(LoopEmitter):
    name = "mine"


class FailingEmitter(LoopEmitter):
    name = "failing"

    def emit(self, view: Any, device: Any) -> ModuleOp:
        raise KeyError("no such thing")


class NothingEmitter(LoopEmitter):
    name = "nothing"

    def emit(self, view: Any, device: Any) -> ModuleOp:
        return None  # type: ignore[return-value]


def with_xdsls_ops(module: ModuleOp) -> None:
    """Makes the ops of our classes those of xDSL's, as code that imports `xdsl.dialects` builds them."""
    for op in module.walk():
        stock = next((base for base in type(op).__mro__ if own_class(base) is type(op)), None)
        if stock is not None:
            op.__class__ = stock


class StockEmitter(LoopEmitter):
    name = "stock"

    def emit(self, view: Any, device: Any) -> ModuleOp:
        module = super().emit(view, device)
        with_xdsls_ops(module)
        return module


@dataclass(frozen=True)
class StockPass(KernelPass):
    name = "stock-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with_xdsls_ops(op)


def test_plugins_may_build_xdsls_ops() -> None:
    def lowered() -> str | None:
        return xe.compile(NEGATE, stage="llvm-dialect", cache=False).trace["llvm-dialect"].ir

    wanted = lowered()
    xe.register_emitter(StockEmitter())
    xe.register_pass(StockPass, after="vectorized")
    assert lowered() == wanted


def steps(**options: Any) -> list[str]:
    return [step.name for step in xe.compile(NEGATE, stage="llvm-dialect", cache=False, **options).trace.steps]


@pytest.mark.tiny
def test_passes_run_in_their_places() -> None:
    places = [
        ({"after": "xla-flatten-tensors"}, "xla-flatten-tensors", 1),
        ({"before": "xla-flatten-tensors"}, "xla-flatten-tensors", -1),
        ({"after": "xla-lower-to-llvm-gpu"}, "xla-lower-to-llvm-gpu", 1),
        ({"after": "vectorized"}, "xla-vectorize-loads-stores", 1),
    ]
    for number, (where, _, _) in enumerate(places):
        xe.register_pass(type("CountsPass", (CountOpsPass,), {"name": f"count-{number}"}), **where)
    trace = xe.compile(NEGATE, stage="llvm-dialect", cache=False).trace
    names = [step.name for step in trace.steps]
    for number, (_, neighbour, distance) in enumerate(places):
        assert names.index(f"count-{number}") == names.index(neighbour) + distance
    assert trace["llvm-dialect"].ir, "the boundary is behind the last pass"


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"after": "xla-cse"}, "the list 'kernel' has 'xla-cse' 6 times"),
        ({"after": "xla-flaten-tensors"}, "no pass or stage 'xla-flaten-tensors'"),
        ({}, "either after= or before="),
        ({"after": "flat", "before": "flat"}, "either after= or before="),
        ({"after": "flat", "of": "kernels"}, "no list of passes 'kernels'"),
    ],
)
def test_a_place_that_is_not_there_is_refused(where: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        xe.register_pass(CountOpsPass, **where)


def test_a_pass_on_hlo_runs_in_the_list_graph() -> None:
    xe.register_pass(CountOpsPass, after="xla-fuse-entry", of="graph")
    program = xe.compile(NEGATE, stage="graph", cache=False)
    names = [step.name for step in program.graph.steps]
    assert names.index("count-ops") == names.index("xla-fuse-entry") + 1


@pytest.mark.parametrize(("wrong", "what"), [(DividingPass, "ZeroDivisionError"), (BreakingPass, "does not verify")])
def test_what_a_pass_does_wrong_is_its_fault_and_has_its_place(wrong: type[KernelPass], what: str) -> None:
    xe.register_pass(wrong, before="xla-erase-dead-functions")
    with pytest.raises(PluginError, match=what) as caught:
        xe.compile(NEGATE, cache=False)
    place = caught.value.place
    assert place.file == __file__
    line = Path(__file__).read_text().splitlines()[place.line - 1]
    assert "1 // 0" in line or "class BreakingPass" in line or "@dataclass" in line
    assert caught.value.exit_code == 1


@pytest.mark.parametrize(
    ("wrong", "what"), [(FailingEmitter(), "no such thing"), (NothingEmitter(), "returned NoneType")]
)
def test_what_an_emitter_does_wrong_is_its_fault(wrong: LoopEmitter, what: str) -> None:
    xe.register_emitter(wrong)
    with pytest.raises(PluginError, match=what) as caught:
        xe.compile(NEGATE, cache=False)
    assert caught.value.place.file == __file__


def test_a_pass_of_ours_that_fails_on_what_a_plugin_made_names_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    xe.register_emitter(ScalarEmitter())

    def fails(*_: Any) -> None:
        raise AssertionError("not foreseen")

    monkeypatch.setattr("xla_emitters.transforms.flatten_tensors.FlattenTensorsPass.apply", fails)
    with pytest.raises(xe.XlaEmittersError, match="not foreseen") as caught:
        xe.compile(NEGATE, cache=False)
    assert caught.value.details == (f"with emitter 'mine' ({__file__})",)


def test_a_device_is_known_by_its_name() -> None:
    xe.register_device(replace(device("h200"), name="Half_H200", cores=66))
    assert device("half_h200").cores == 66
    with pytest.raises(UsageError, match="registered already"):
        xe.register_device(replace(device("h200"), name="half_h200"))


def test_a_library_call_computes() -> None:
    xe.register_library_call("twice", lambda call: [call.operands[0] * 2])
    text = 'ENTRY f { p = f32[3] parameter(0)\n ROOT t = f32[3] custom-call(p), custom_call_target="twice" }'
    value = xe.compile(text, cache=False).run_cpu(np.array([1, 2, 3], np.float32))
    assert value.tolist() == [2, 4, 6]
    assert xe.check(text).ok
    with pytest.raises(Unsupported, match="a bundle does not hold library function 'twice' of a plugin"):
        write_bundle(BytesIO(), [Case("twice", xe.compile(text, cache=False), text, 0, [], [])])
    with pytest.raises(UsageError, match="registered already"):
        xe.register_library_call("Sharding", lambda call: [])


def test_a_library_call_that_fails_is_the_plugins_fault() -> None:
    xe.register_library_call("broken", lambda call: [call.operands[7]])
    text = 'ENTRY f { p = f32[3] parameter(0)\n ROOT t = f32[3] custom-call(p), custom_call_target="broken" }'
    with pytest.raises(PluginError, match="library call 'broken': IndexError"):
        xe.compile(text, cache=False).run_cpu(np.zeros(3, np.float32))


def test_a_function_comes_before_the_tables() -> None:
    with pytest.raises(UsageError, match="comes too late"):
        register_function(RealFunction("hypot", "math.hypot", "hypot", "hypot", operands=2))


def outsider(file: Path | None, monkeypatch: pytest.MonkeyPatch) -> LoopEmitter:
    """An emitter of a module that is in this file, or in none as at a Python prompt."""
    module = ModuleType("outside_emitter")
    source = "from xla_emitters.emitters.loop import LoopEmitter\nclass Outside(LoopEmitter):\n    name = 'outside'\n"
    exec(source, module.__dict__)
    if file is not None:
        file.write_text(source)
        module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "outside_emitter", module)
    return module.Outside()


def test_the_cache_knows_plugins_and_their_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_EMITTERS_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("XLA_EMITTERS_CACHE_DIR", str(tmp_path / "cache"))
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("SIZE = 1\n")
    xe.register_emitter(outsider(package / "outside.py", monkeypatch))
    assert plugins.sources() == tuple(package / name for name in ("__init__.py", "helper.py", "outside.py"))
    from xla_emitters.pipelines.kept_programs import _key
    from xla_emitters.pipelines.options import CompileOptions

    before = _key(NEGATE, "<hlo>", CompileOptions(stage="scf"))
    (package / "helper.py").write_text("SIZE = 2\n")
    assert before
    assert _key(NEGATE, "<hlo>", CompileOptions(stage="scf")) not in (before, None)


def test_the_cache_knows_modules_that_plugins_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules beside a plugin, also imported late and by each other; no installed package, nor what is not there."""
    (tmp_path / "beside_one.py").write_text(
        "def go():\n    from beside_two import SIZE\n    import no_such_module, numpy, json\n"
    )
    (tmp_path / "beside_two.py").write_text("import beside_one\nSIZE = 1\n")
    (tmp_path / "beside_three.py").write_text("import beside_one\n")
    emitter = outsider(tmp_path / "outside.py", monkeypatch)
    with (tmp_path / "outside.py").open("a") as file:
        file.write("import beside_one\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    xe.register_emitter(emitter)
    assert plugins.sources() == tuple(tmp_path / name for name in ("beside_one.py", "beside_two.py", "outside.py"))


def test_the_cache_knows_the_passes_of_a_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's own pass, which nothing registers: edited, it is not answered from before."""
    from xla_emitters.pipelines.kept_programs import _key
    from xla_emitters.pipelines.options import CompileOptions

    monkeypatch.delenv("XLA_EMITTERS_DISABLE_CACHE", raising=False)
    monkeypatch.setenv("XLA_EMITTERS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    keys = list[str | None]()
    for word in ("one", "three"):
        (tmp_path / "own_pass.py").write_text(OWN_PASS.replace("WORD", word))
        own = import_module("own_pass").Own()
        keys.append(_key(NEGATE, "<hlo>", CompileOptions(stage="llvm-dialect", pipeline=(own,))))
        monkeypatch.delitem(sys.modules, "own_pass")
    assert None not in keys
    assert keys[0] != keys[1]


OWN_PASS = """
from xla_emitters.rewrite.kernel_pass import KernelPass
class Own(KernelPass):
    name = "own"
    def apply(self, ctx, op):
        self.remark(op, "WORD")
"""


def test_what_is_in_no_file_is_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    xe.register_emitter(outsider(None, monkeypatch))
    assert plugins.sources() is None


def test_a_pipeline_replaces_the_list() -> None:
    assert steps(pipeline=(CountOpsPass(),)) == ["hlo", "partition", "emit", "count-ops"]
    with pytest.raises(UsageError, match="the pipeline has no stage 'flat'") as caught:
        xe.compile(NEGATE, stage="flat", pipeline=(CountOpsPass(),), cache=False)
    assert caught.value.help == "one of: hlo, graph, partition, xla_gpu, llvm-dialect, llvm, ptx, sass"
    with pytest.raises(UsageError, match=r"the pipeline leaves 'func.func'"):
        xe.compile(NEGATE, pipeline=(CountOpsPass(),), cache=False)


# ---------------------------------------------------------------------------------------------------- as an installed package


KNOWN_FUNCTIONS = """
ARCTAN = RealFunction(op="math.atan", opcode="arctan")
COPYSIGN = RealFunction(op="math.copysign", opcode="copysign", operands=2)
TANH2 = RealFunction(op="math.tanh", opcode="tanh2")
"""
"""Of MLIR's op alone: the table has the other names. tanh has an opcode already and gets a second one."""
CALLS_OF_KNOWN_FUNCTIONS = """
x = np.random.default_rng(0).standard_normal(256, np.float32)
text = "ENTRY f {{ p = f32[256] parameter(0)\\n q = f32[256] reverse(p), dimensions={{0}}\\n ROOT r = f32[256] {}({}) }}"
for opcode, operands, wanted in (
    ("arctan", "p", np.arctan(x)), ("tanh2", "p", np.tanh(x)), ("tanh", "p", np.tanh(x)), ("copysign", "p, q", np.copysign(x, x[::-1]))
):
    p = xe.compile(text.format(opcode, operands), stage="llvm-dialect", cache=False)
    np.testing.assert_allclose(p.run_cpu(x), wanted, rtol=1e-6)
    if opcode == "copysign":
        xe.check(text.format(opcode, operands)).raise_if_different()
"""


def installed(folder: Path) -> dict[str, str]:
    """A package in `folder` as pip leaves it, made of the code in docs/plugins.md; returns the environment in which it is found."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "plugins.md").read_text(), re.DOTALL | re.MULTILINE)
    (folder / "my_plugin.py").write_text(blocks[0].partition("\nregister()\n")[0])
    (folder / "my_plugin_functions.py").write_text(blocks[1] + KNOWN_FUNCTIONS)
    info = folder / "my_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1.0\n")
    lines = [
        "[xla_emitters.plugins]",
        "mine = my_plugin:register",
        "[xla_emitters.functions]",
        "hypot = my_plugin_functions:HYPOT",
        *(f"{name.lower()} = my_plugin_functions:{name}" for name in ("ARCTAN", "COPYSIGN", "TANH2")),
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    paths = [str(folder), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "XLA_EMITTERS_CACHE_DIR": str(folder / "cache")}


def run_python(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_what_plugins_import_is_exported() -> None:
    """Each name by itself, in a process where nothing else was imported; the examples of the docs need no other module."""
    for page in ("plugins.md", "extending.md"):
        code = "\n".join(
            re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)
        )
        modules = set(re.findall(r"^(?:from|import) (xla_emitters\S*)", code, re.MULTILINE))
        assert {"xla_emitters.extend"} <= modules <= {"xla_emitters", "xla_emitters.extend", "xla_emitters.library"}
    code = """
import sys, xla_emitters.extend as extend
assert not {"numpy", "xdsl"} & sys.modules.keys()
print([name for name in extend.__all__ if not hasattr(extend, name)], len(extend.__all__) > 50)
"""
    assert run_python(code, dict(os.environ)).stdout == "[] True\n"
    with pytest.raises(ImportError):
        from xla_emitters.extend import nothing  # type: ignore[attr-defined]  # noqa: F401  # pyright: ignore


def test_an_installed_package_is_known_to_the_tools(tmp_path: Path) -> None:
    environment = installed(tmp_path)
    hypot = "ENTRY f { p = f32[2] parameter(0)\n ROOT h = f32[2] hypot(p, p) }"
    scalar = "ENTRY f { p = f32[] parameter(0)\n ROOT h = f32[] negate(p) }"
    (tmp_path / "x.mlir").write_text("module {}")
    done = run_python(
        f"""
import sys, numpy as np, xla_emitters as xe
from xla_emitters.tools.main import main
from xla_emitters.tools.opt import main as opt
program = xe.compile({hypot!r}, stage="llvm-dialect", target="half_h200")
print(program.target, program.run_cpu(np.array([3, 5], np.float32)).tolist())
print(["__nv_hypotf" in program.code], [step.name for step in program.trace.steps].count("count-ops"))
print([d.data["name"] for d in xe.compile({scalar!r}, stage="xla_gpu").trace.decisions if d.topic == "emitter"])
assert opt([{str(tmp_path / "x.mlir")!r}, "-p", "count-ops"]) == 0
main(["doctor"])
{CALLS_OF_KNOWN_FUNCTIONS}
""",
        environment,
    )
    assert done.returncode == 0, done.stderr
    first, second, third, *rest = done.stdout.splitlines()
    name, _, values = first.partition(" ")
    assert name == "half_h200"
    assert np.allclose(eval(values), np.hypot([3, 5], [3, 5]))
    assert second == "[True] 1"
    assert third == "['scalar']"
    text = "\n".join(rest)
    for kind, name in (
        ("emitter", "scalar"),
        ("pass", "count-ops"),
        ("device", "half_h200"),
        ("library call", "twice"),
        ("function", "hypot"),
    ):
        assert re.search(rf"ok +{name} +{kind}  ", text), text
