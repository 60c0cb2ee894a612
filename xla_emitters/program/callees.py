"""What steps name: the code of kernels, and calls of a library's functions, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from xla_emitters.program.step_values import Argument, ArraySpec, LaunchDimensions, Size
from xla_emitters.support.late_dataclass import dataclass


@dataclass(frozen=True)
class ScalarArgument:
    """A number that a kernel takes: its type in IR, and its value in the first launch."""

    dtype: str
    value: Size


@dataclass(frozen=True)
class Kernel:
    """Code of one entry function, its launch, and its arguments.

    ptx             text of the module that contains the entry, and the program's other kernels; "" when the compilation stopped
                    before PTX
    architecture    target of the compilation, e.g. "sm_90"
    launch          the first one
    shared_bytes    static shared memory of one block
    arguments       in the order of the entry's parameters, with the program's arrays in its first launch
    scalars         the numbers that it takes after them
    """

    name: str
    ptx: str = field(repr=False)
    architecture: str
    launch: LaunchDimensions
    shared_bytes: int
    arguments: tuple[Argument, ...]
    scalars: tuple[ScalarArgument, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.launch}, {self.architecture}"


OF_THE_HOST = "hlo."
"""What the name of a call begins with that no function of a library computes."""


@dataclass(frozen=True)
class LibraryCall:
    """A call of a library's function, or of an op on the host.

    name         of our function, a row of `library.FUNCTIONS` such as "gemm", not HLO's custom_call_target, "__cublas$gemm"; or
                 OF_THE_HOST and an opcode: "hlo.shape-assertion"
    instruction  the HLO instruction that it computes
    operands     logical arrays that are read
    results      logical arrays that are written
    config       the call's configuration, as plain data
    source       the lines of Python that it computes: `text.hlo.stack_frames.PythonLines.data_of`; () if the text has none
    """

    name: str
    instruction: str
    operands: tuple[ArraySpec, ...]
    results: tuple[ArraySpec, ...]
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    source: tuple[Mapping[str, Any], ...] = ()
