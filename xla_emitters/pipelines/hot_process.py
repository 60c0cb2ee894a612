"""The process that compiles hot fusions: a line of JSON in, a line out, until the input ends.

    echo '{"platform": "cpu", "fusion": ..., "shapes": [[4, 32]], "numbers": [], "target": "h200"}' |
        python -m xla_emitters.pipelines.hot_process

For a request that cannot be compiled the answer is {"declined": why}. The process has a low priority; nothing else may be printed.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Any

from xla_emitters.errors import XlaEmittersError

NICE = 10


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(AttributeError, OSError):
        os.nice(NICE)
    for line in sys.stdin.buffer:
        answers.write(json.dumps(_answer(line)).encode() + b"\n")
        answers.flush()


def _answer(line: bytes) -> dict[str, Any]:
    from xla_emitters.pipelines.hot_kernels import compile_hot

    try:
        return compile_hot(json.loads(line))
    except XlaEmittersError as error:
        return {"declined": error.message}
    except Exception as error:  # a bug of ours: the answer is not cached, and the process goes on
        return {"declined": f"{type(error).__name__}: {error}", "is_fault": True}


if __name__ == "__main__":
    main()
