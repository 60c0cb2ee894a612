"""The programs of `tests/corpus/devices` for as many devices as there are processes, each process one device, against JAX's results.

    mpirun -n 8 python -m runtime.mpi_programs        prints a row a program; exit 1 if one is wrong

`make mpi` runs this with 2, 4 and 8 processes.
"""

import sys
import time

from runtime.test_device_programs import FILES, NAMES, close

from xla_emitters.errors import XlaEmittersError
from xla_emitters.explore.compile import compile
from xla_emitters.library.devices import Participant, of_device
from xla_emitters.runtime.arrays import load_named
from xla_emitters.runtime.comm.mpi import MpiExchange, MpiJob
from xla_emitters.runtime.cpu.cpu_launcher import run_program
from xla_emitters.runtime.device_arrays import load_for_devices


def main() -> int:
    try:
        job = MpiJob()
    except XlaEmittersError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    exchange, wrong, count = MpiExchange(job), 0, 0
    for name in NAMES:
        text = (FILES / f"{name}.hlo").read_text()
        if f"num_partitions={job.size}," not in text:
            continue
        count += 1
        program = compile(text, stage="llvm-dialect", record="stages", cache=False)
        given = load_for_devices(FILES / f"{name}.npz", program)[job.rank]
        start = time.perf_counter()
        with of_device(Participant(job.rank, exchange)):
            results = run_program(program, given)
        seconds = time.perf_counter() - start
        keys = [f"r{number}@{job.rank}" for number in range(len(results))]
        wanted = load_named(FILES / f"{name}.npz", keys, program.results)
        found = job.gather((all(map(close, results, wanted)), seconds))
        bad = [rank for rank, (is_right, _) in enumerate(found) if not is_right]
        wrong += bool(bad)
        if job.rank == 0:
            print(
                f"{name:24} {max(seconds for _, seconds in found):6.3f} s  {f'wrong on {bad}' if bad else 'ok'}",
                flush=True,
            )
    exchange.end(job.rank)
    if job.rank == 0:
        print(f"{count - wrong} of {count} programs right on {job.size} processes")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
