"""Damaged whole modules, and modules larger than any that XLA makes: a message with a place, or a result within the limits.

Damaged texts of `tests/corpus/modules` (`damage.py`, a seed each), custom-calls with unusual configurations, and 20,000
instructions in the shapes that are hardest for passes over modules.
"""

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from long_lists import but_long
from runtime.damage import QUIET
from runtime.seeds import seeds
from runtime.test_bad_input import faults

from xla_emitters.errors import InternalError, XlaEmittersError
from xla_emitters.explore.listing import list_module
from xla_emitters.pipelines.compiler import compile_module, plan_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.runtime.cpu.cpu_launcher import run_program
from xla_emitters.runtime.inputs import draw_inputs
from xla_emitters.support.limits import limited_iterations
from xla_emitters.text.hlo import parse_hlo

MODULES = Path(__file__).parents[1] / "corpus" / "modules"
SMALL = 6_000
"""Limit on the characters of a text; larger modules would test nothing more."""
SECONDS, BYTES = 15, 1 << 30


@pytest.fixture(scope="module")
def texts() -> list[str]:
    found = (path.read_text() for path in sorted(MODULES.glob("*.hlo")))
    return [text for text in found if len(text) < SMALL]


# ---- damage ----


def test_damaged_modules_are_planned_or_refused(texts: list[str]) -> None:
    def run(text: str) -> None:
        plan_module(parse_hlo(text, "bad"), CompileOptions())

    assert not faults(run, texts, seeds(60), QUIET)


def test_damaged_modules_are_listed(texts: list[str]) -> None:
    """A module that can be read is listed: refusals are rows."""

    def run(text: str) -> None:
        list_module(parse_hlo(text, "bad"), CompileOptions())

    assert not faults(run, texts, seeds(20, of_all=0.2), QUIET)


def test_damaged_modules_run_or_are_refused(texts: list[str]) -> None:
    """Runs instruction by instruction, on drawn arrays; a loop that no longer ends is an error too."""

    def run(text: str) -> None:
        module = parse_hlo(text, "bad")
        program = compile_module(module, CompileOptions(stage="hlo", record="none"))
        entry = next(op for op in reversed(list(module.ops)))
        with limited_iterations(20):
            run_program(program, draw_inputs(entry, program.parameters, 0), "hlo")

    found = faults(run, texts, seeds(40, of_all=0.2), QUIET)
    # The program's text is printed anew, and names the module, not the file; parameters beyond memory have no place.
    assert not [fault for fault in found if not re.search(r">:\d+:\d+: error|a run may take", fault[1])]


_VALUE = re.compile(r"(?<=:)(?:\"[^\"]*\"|-?[\d.e+]+|true|false|\[[^\]]*\])")
_KEY = re.compile(r"\"\w+\"(?=:)")
_PAIR = re.compile(r"\"\w+\":(?:\"[^\"]*\"|-?[\d.e+]+|true|false|\[[^\]]*\]),?")
VALUES = ('"x"', "-1", "1e99", "null", "[]", "{}", "true", '"99999999999999999999"', '""')


def broken(text: str, rng: random.Random) -> str:
    """Changes or removes one thing in one `backend_config`."""
    config = rng.choice(list(re.finditer(r"backend_config=\{[^\n]*", text)))
    pattern, by = rng.choice(((_VALUE, rng.choice(VALUES)), (_KEY, '"epilogue"'), (_KEY, '"other"'), (_PAIR, "")))
    places = list(pattern.finditer(config.group()))
    if not places:
        return text
    place = rng.choice(places)
    changed = config.group()[: place.start()] + by + config.group()[place.end() :]
    return text[: config.start()] + changed + text[config.end() :]


def test_broken_configurations_are_planned_or_refused(texts: list[str]) -> None:
    calling = [text for text in texts if "custom-call(" in text and "backend_config={" in text]
    assert calling
    for seed in seeds(20):
        rng = random.Random(seed)
        text = broken(calling[seed % len(calling)], rng)
        message = "bad:1:1"
        try:
            list_module(module := parse_hlo(text, "bad"), CompileOptions())
            plan_module(module, CompileOptions())
        except InternalError as error:
            message = error.message
        except XlaEmittersError as error:
            message = error.render()
        assert re.search(r"bad:\d+:\d+", message), f"seed {seed}: {message}"


# ---- size ----


def entry(*lines: str) -> str:
    return "ENTRY main {\n  x = f32[64] parameter(0)\n" + "\n".join(f"  {line}" for line in lines) + "\n}\n"


def fusions(computations: int, sharing: int) -> str:
    """Fusions one after the other, each with its own computation; then some that share one, each with a constant."""
    made, lines, last = ["HloModule fusions"], list[str](), "x"
    for n in range(computations):
        made.append(
            f"own.{n} {{ p = f32[64] parameter(0)\n  a = f32[64] {('negate', 'sine', 'tanh')[n % 3]}(p)\n"
            "  b = f32[64] add(a, p)\n  ROOT r = f32[64] multiply(b, a) }"
        )
        lines.append(f"a.{n} = f32[64] fusion({last}), kind=kLoop, calls=own.{n}")
        last = f"a.{n}"
    made.append(
        "shared { p = f32[64] parameter(0)\n  q = f32[] parameter(1)\n"
        "  b = f32[64] broadcast(q), dimensions={}\n  ROOT r = f32[64] add(p, b) }"
    )
    for n in range(sharing):
        lines += [f"k.{n} = f32[] constant({n})", f"s.{n} = f32[64] fusion({last}, k.{n}), kind=kLoop, calls=shared"]
        last = f"s.{n}"
    return "\n".join([*made, entry(*lines, f"ROOT r = f32[64] negate({last})")])


STATE = "(s32[], f32[64])"


def loops(number: int, *, nested: bool) -> str:
    """Loops, in each other or one after the other."""
    made, lines = ["HloModule loops"], ["z = s32[] constant(0)", f"w.0 = {STATE} tuple(z, x)"]
    for n in range(number):
        inner = f"w = {STATE} while(s), condition=cond.{n - 1}, body=body.{n - 1}" if nested and n else "w = s"
        around = "w" if nested and n else "s"
        made.append(
            f"cond.{n} {{ s = {STATE} parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
            "  n = s32[] constant(5)\n  ROOT l = pred[] compare(i, n), direction=LT }\n"
            f"body.{n} {{ s = {STATE} parameter(0)\n"
            + (f"  {inner}\n" if around == "w" else "")
            + f"  i = s32[] get-tuple-element(s), index=0\n  x = f32[64] get-tuple-element({around}), index=1\n"
            f"  j = s32[] add(i, i)\n  y = f32[64] negate(x)\n  ROOT t = {STATE} tuple(j, y) }}"
        )
        if not nested:
            lines.append(f"w.{n + 1} = {STATE} while(w.{n}), condition=cond.{n}, body=body.{n}")
    last = number - 1
    if nested:
        lines.append(f"w.{number} = {STATE} while(w.0), condition=cond.{last}, body=body.{last}")
    return "\n".join([*made, entry(*lines, f"ROOT r = f32[64] get-tuple-element(w.{number}), index=1")])


def calls(deep: int) -> str:
    """A chain of computations, each calling the next."""
    made = ["HloModule calls", "f.0 { p = f32[64] parameter(0)\n  ROOT n = f32[64] negate(p) }"]
    made += (
        f"f.{n} {{ p = f32[64] parameter(0)\n  c = f32[64] call(p), to_apply=f.{n - 1}\n  ROOT n = f32[64] sine(c) }}"
        for n in range(1, deep)
    )
    return "\n".join([*made, entry(f"ROOT r = f32[64] call(x), to_apply=f.{deep - 1}")])


LARGE: dict[str, tuple[Callable[[], str], int]] = {
    "20,000 instructions, 1,000 sharing a computation": (lambda: fusions(3600, 1000), 4601),
    "500 loops in each other": (lambda: loops(500, nested=True), 1501),
    "100 loops one after the other": (lambda: loops(100, nested=False), 301),
    "2,000 calls deep": (lambda: calls(2000), 1),
}

# Reads and plans a text within the limits; as JSON: kernels, seconds of the processor.
UNDER_LIMITS = """
import json, resource, sys, time
from xla_emitters.tools.cold_start import begin
begin()  # as a command does
from xla_emitters.pipelines.compiler import plan_module, read_module
from xla_emitters.pipelines.options import CompileOptions
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2)
text = sys.stdin.read()
start = time.process_time()
kernels = len(plan_module(read_module(text), CompileOptions(tune=sys.argv[2])).kernels)
print(json.dumps([kernels, time.process_time() - start]))
"""


def planned(text: str, tune: str) -> tuple[int, float]:
    """How many kernels, and seconds of the processor."""
    done = subprocess.run(
        [sys.executable, "-c", UNDER_LIMITS, str(BYTES), tune],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=10 * SECONDS,
    )
    assert done.returncode == 0, done.stderr
    kernels, seconds = json.loads(done.stdout)
    return kernels, seconds


@pytest.mark.parametrize("name", but_long(LARGE, list(LARGE)[:3]))
def test_large_modules_are_planned_in_seconds(name: str) -> None:
    make, wanted = LARGE[name]
    kernels, seconds = planned(make(), "xla")
    assert kernels == wanted
    assert seconds < SECONDS


@pytest.mark.long
def test_a_long_chain_of_fusions_is_merged_in_seconds() -> None:
    """By rules it is a few kernels, of at most 512 instructions; the chain has 3,450, without those that only hold numbers."""
    kernels, seconds = planned(fusions(900, 250), "auto")
    assert 3450 / 512 <= kernels <= 4 * 3450 / 512
    assert seconds < SECONDS
