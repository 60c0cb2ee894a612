"""NCCL on one GPU: a group of one, whose sums, sends and receives are its own. Prints what is wrong; exit 1 then, 4 without CuPy or NCCL.

Run by all.sh; RANK and WORLD_SIZE are set here, as a launcher sets them.
"""

import sys
from typing import Any

import numpy as np

from xla_emitters.errors import ToolError
from xla_emitters.runtime.comm.jobs import TcpJob
from xla_emitters.runtime.comm.nccl import NcclExchange
from xla_emitters.runtime.cuda.cupy_platform import find_cupy


def main() -> int:
    try:
        exchange = NcclExchange(TcpJob({"RANK": "0", "WORLD_SIZE": "1"}), ())
    except ToolError as error:
        print(error.render())
        return error.exit_code
    cupy: Any = find_cupy()[0]
    numbers = {"f32": np.arange(1 << 20, dtype=np.float32), "s32": np.arange(-5, 5, dtype=np.int32)}
    wrong = list[str]()
    for kind, given in numbers.items():
        array = cupy.asarray(given)
        for reduction in ("add", "multiply", "maximum", "minimum"):
            found = exchange.all_reduce((0,), [array], reduction, [kind])
            if found is None or not np.array_equal(cupy.asnumpy(found[0]), given):
                wrong.append(f"{reduction} of {kind}")
        exchange.send(0, 0, "channel 1", [array])
        (moved,) = exchange.receive(0, 0, "channel 1", [array])
        exchange.end(0)
        if not np.array_equal(cupy.asnumpy(moved), given):
            wrong.append(f"a send to itself of {kind}")
    print(f"NCCL alone: {'; '.join(wrong) or 'right'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
