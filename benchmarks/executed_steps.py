"""How many steps a call of a program runs, those in loops as often as they run."""

from collections.abc import Sequence
from typing import Any

from xla_emitters.program.steps import Step
from xla_emitters.runtime.loaded import LoadedProgram
from xla_emitters.runtime.walk import Frame, HostMemory, Run


def steps_of(loaded: LoadedProgram, inputs: Sequence[Any], memory: HostMemory) -> int:
    """See the file's head. `memory`: of the platform that the program is loaded for"""
    count = 0

    class Counting(Frame):
        def prepare(self, step: Step) -> Run | None:
            run = super().prepare(step)
            return None if run is None else self._counted(run)

        def _counted(self, run: Run) -> Run:
            def counted() -> None:
                nonlocal count
                count += 1
                run()

            return counted

    bound = loaded.bind([array.shape for array in inputs])
    Counting(bound, loaded.made, loaded.platform, memory).run(inputs)
    return count
