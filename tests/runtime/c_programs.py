"""Programs with unknown sizes as C: compiled by the machine's C compiler, called, and compared with the host program in the executor.

    python -m runtime.c_programs                all programs of `programs_table`; exit code 1 where one differs
    python -m runtime.c_programs rope layer     of these

A program that `bundle --abi c` takes is called as the bundle is, and by `logged_calls.c`, which logs its calls of the runtime. The executor
runs the IR at the stage `host` that the bundle is made of, with the same machine code of kernels. The logs are equal, line by line, and so
are the results' bits; where a library's product or convolution adds in another order than C, the results of both are within the bounds of
the program's ops. A row: the program, its shapes, the calls that all of them made, the verdict. A program that the bundle refuses is listed
with the reason, the functions that C lacks.
"""

import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from runtime.programs_table import KnownProgram, programs

from xla_emitters.dtypes import dtype
from xla_emitters.errors import Unsupported
from xla_emitters.explore.check.verdict import reference_of
from xla_emitters.lowering.cpu.cpu_code import CpuCode
from xla_emitters.lowering.cpu.cpu_steps import ENTRY
from xla_emitters.pipelines.c_bundle import c_bundle
from xla_emitters.pipelines.cpu_lowering import CpuLowering
from xla_emitters.program import Extents, Program
from xla_emitters.runtime.arrays import same_bits
from xla_emitters.runtime.numpy_platform import Kernels
from xla_emitters.runtime.ral.host_program import HostProgram

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang") or ""
FLAGS = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable"]
RANK = 16
HERE = Path(__file__).parent
SUMS = ("ral_gemm", "ral_conv", "lmhlo_dot_")
"""Functions whose order of additions is not that of ral.c."""

Array = np.ndarray[Any, Any]


# ------------------------------------------------------------------------------------------------------- compiled, called


@cache
def compiled_runtime(source: bytes, header: bytes) -> bytes:
    """The object file of a bundle's runtime, which is the same for all programs and takes most of the compiler's time."""
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        (directory / "ral.c").write_bytes(source)
        (directory / "ral.h").write_bytes(header)
        subprocess.run([COMPILER, *FLAGS, "-c", "ral.c", "-o", "ral.o"], cwd=directory, check=True, timeout=60)
        return (directory / "ral.o").read_bytes()


def built(program: Program, name: str, directory: Path) -> Path:
    """The caller of a program, as an executable. raises CalledProcessError with what the compiler says: it has no warnings"""
    files = c_bundle(program, name)
    files["ral.o"] = compiled_runtime(files["ral.c"], files["ral.h"])
    for file, data in files.items():
        (directory / file).write_bytes(data)
    macros = [f'-DHEADER="{name}.h"', f"-DNAME={name}", *_results(program)]
    macros += [f"-DINPUTS={name.upper()}_INPUTS", f"-DOUTPUTS={name.upper()}_OUTPUTS"]
    sources = [str(directory / file) for file in (f"{name}.c", "ral.o", f"{name}.o")]
    caller, executable = str(HERE / "caller.c"), str(directory / name)
    command = [COMPILER, *FLAGS, f"-I{directory}", *macros, caller, *sources, "-o", executable, "-lm"]
    subprocess.run(command, check=True, timeout=60)
    return directory / name


def built_with_log(program: Program, name: str, directory: Path) -> Path:
    """The same program with a log of its calls, beside a bundle that `built` has written."""
    macros = [f'-DSOURCE="{name}.c"', *_results(program)]
    command = [COMPILER, *FLAGS, f"-I{directory}", *macros, str(HERE / "logged_calls.c"), str(directory / f"{name}.o")]
    subprocess.run([*command, "-o", str(directory / "logged"), "-lm"], check=True, timeout=60)
    return directory / "logged"


def _results(program: Program) -> list[str]:
    ranks = ",".join(str(len(spec.shape)) for spec in program.results)
    sizes = ",".join(str(dtype(spec.dtype).numpy.itemsize) for spec in program.results)
    return [f"-DRANKS={{{ranks}}}", f"-DBYTES={{{sizes}}}"]


def called(
    executable: Path,
    program: Program,
    runs: Sequence[Sequence[Array]],
    last: str = "",
    constants: Path | None = None,
) -> tuple[list[list[Array] | None], str]:
    """The results of each run, None for a refused one, and all messages.

    last  the executable's fourth argument: a limit on memory of caller.c, the log of logged_calls.c
    """
    given, made = executable.with_suffix(".in"), executable.with_suffix(".out")
    data = np.int64(len(runs)).tobytes()
    for arrays in runs:
        for array in arrays:
            sizes = [*array.shape, *[0] * (RANK - array.ndim)]
            data += np.array([*sizes, array.nbytes], np.int64).tobytes() + array.tobytes()
    given.write_bytes(data)
    command = [executable, given, made, constants or executable.with_suffix(".bin"), *([last] if last else [])]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 0, answer.stderr or f"exit code {answer.returncode}"
    left, found = made.read_bytes(), list[list[Array] | None]()
    for _ in runs:
        is_good, left = left[:1] == b"+", left[1:]
        found.append([] if is_good else None)
        for element, shape in ((spec.dtype, spec.shape) for spec in program.results) if is_good else ():
            held, rank = dtype(element).numpy, len(shape)
            sizes = tuple(np.frombuffer(left[: 8 * rank], np.int64))
            count = held.itemsize * int(prod(sizes))
            found[-1].append(np.frombuffer(left[8 * rank : 8 * rank + count], held).reshape(sizes))  # type: ignore[union-attr]
            left = left[8 * rank + count :]
    return found, answer.stderr


# ------------------------------------------------------------------------------------------------------------- compared


class MachineCode(Kernels):
    """The kernels of a program as machine code in this process: the code that a bundle has too."""

    def __init__(self, lowering: CpuLowering) -> None:
        code = CpuCode(lowering.ir, lowering.cpu)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._steps = {name: kind(code.address(f"{name}{ENTRY}")) for name in lowering.parameters}

    def launch(self, name: str, grid: Extents, block: Extents, shared_bytes: int, arguments: Sequence[Any]) -> None:
        scratch = np.empty(shared_bytes + 64, np.uint8)
        given = [value.ctypes.data if isinstance(value, np.ndarray) else int(value) for value in arguments]
        words = (ctypes.c_int64 * (len(given) + 3))(*given, 0, grid[0], scratch.ctypes.data + -scratch.ctypes.data % 64)
        self._steps[name](ctypes.addressof(words))


@dataclass(frozen=True)
class Compared:
    """What a program in C did.

    calls      that all runs logged
    has_sums   whether it has products or convolutions of the library, so that its results are compared within bounds
    wrong      how it differs from the executor's run; "" if it does not
    """

    calls: int
    has_sums: bool
    wrong: str = ""


def compared(known: KnownProgram, program: Program, directory: Path) -> Compared:
    """A program in C against its host program, at all its sizes. raises Unsupported like `c_bundle`"""
    assert program.compilation.fused is not None
    executable = built(program, "program", directory)
    lowering = CpuLowering(program.name, program.compilation.fused, program.compilation.options)
    with_log = built_with_log(program, "program", directory)
    host, wanted, log = HostProgram(lowering.host, MachineCode(lowering)), list[list[Array]](), list[str]()
    runs = [program.compilation.checked(known.inputs(sizes)) for sizes in known.case.sizes]
    for arrays in runs:
        given = [array.copy() if number in host.donated else array for number, array in enumerate(arrays)]
        wanted.append(host.run_on_garbage(given, log))
        log.append("end")
    by_name, _ = called(with_log, program, runs, str(directory / "log"), executable.with_suffix(".bin"))
    as_bundled, _ = called(executable, program, runs)
    log = [line for line in log if _is_called(line)]
    # In C an allocation also says the buffer's name, for messages.
    named = re.compile(r"^(alloc_\S*)_pvoid(___\S*(?: \d+)*)(?: [^\d\s]\S*)?$")
    calls = [named.sub(r"\1\2", line) for line in (directory / "log").read_text().splitlines()]
    has_sums = any(line.startswith(SUMS) for line in calls)
    found = Compared(len(calls) - len(runs), has_sums)
    if calls != log:
        pairs = enumerate(zip([*calls, "nothing"], [*log, "nothing"], strict=False))
        number, (c, executor) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
        return replace(found, wrong=f"call {number} is {c} in C, {executor} in the executor")
    for number, (arrays, results) in enumerate(zip(runs, wanted, strict=True)):
        for way, others in (("with a log", by_name[number]), ("as bundled", as_bundled[number])):
            assert others is not None
            for result, (one, other) in enumerate(zip(results, others, strict=True)):
                if (one.dtype, one.shape) != (other.dtype, other.shape):
                    return replace(found, wrong=f"{way}: r{result} is {other.dtype}{other.shape} at shape {number}")
                if not has_sums and not same_bits(one, other):
                    return replace(found, wrong=f"{way}: other bits in r{result} at shape {number}")
            if has_sums and not (verdict := reference_of(program, arrays).compare(others)).ok:
                return replace(found, wrong=f"{way}: at shape {number} {verdict.summary}")
    return found


def _is_called(line: str) -> bool:
    """Whether C has a call for a line of the executor's log: ops on integers are code there."""
    return not line.startswith("lmhlo_") or line.startswith(("lmhlo_dot_", "lmhlo_shape_assertion_"))


def row(known: KnownProgram) -> tuple[bool | None, str]:
    """Whether a program in C is right, None for one that is refused; and its row."""
    program = known.compiled()
    try:
        with tempfile.TemporaryDirectory() as made:
            found = compared(known, program, Path(made))
    except Unsupported as error:
        return None, f"{known.name:26} {error.message}"
    except (AssertionError, subprocess.SubprocessError) as error:
        return False, f"{known.name:26} fails: {error}"
    verdict = found.wrong or ("within bounds" if found.has_sums else "same bits")
    return not found.wrong, f"{known.name:26} {len(known.case.sizes):6} {found.calls:8} {verdict}"


def main(names: Sequence[str]) -> int:
    known, start = programs(), time.perf_counter()
    print(f"{'program':26} {'shapes':>6} {'calls':>8}")
    verdicts, refused = dict[str, bool](), list[str]()
    for name in names or known:
        is_right, line = row(known[name])
        if is_right is None:
            refused.append(line)
        else:
            verdicts[name] = is_right
            print(line, flush=True)
    right = sum(verdicts.values())
    print(
        f"\n{right} of {len(verdicts)} programs in C do what their host program does: the same calls, and the same bits or within bounds"
    )
    print(f"\n{len(refused)} programs that C does not take:", *refused, sep="\n")
    print(f"\n{len(verdicts) + len(refused)} programs in {time.perf_counter() - start:.0f} s")
    return 0 if all(verdicts.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
