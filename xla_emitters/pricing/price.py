"""The cost of one of our kernels: assembles its PTX, runs some of its blocks on the CPU, reads its fusion's maps, and applies the model.

    machine = assemble(program.code, "sm_90", toolchain)
    price_kernel(kernel, planned.view, module, device("h200"), machine_code_of(program.code, "sm_90", toolchain))   ->   KernelCost(...)

For a program with unknown sizes, the launch is given as numbers, and so are the arrays, by the sizes in `kernel.arguments`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.device import Device
from xla_emitters.dtypes import Array, dtype
from xla_emitters.graph.footprint import needed_of_parameters
from xla_emitters.graph.view import FusionView
from xla_emitters.lowering.toolchain.machine_code import EntryResources, assemble, disassemble
from xla_emitters.pricing.model import KernelCost, NeededBytes, kernel_cost
from xla_emitters.pricing.occupancy import occupancy
from xla_emitters.pricing.sass import kernels_of
from xla_emitters.pricing.traffic import Traffic, arrays_for, measure_traffic
from xla_emitters.program import Kernel
from xla_emitters.settings import Toolchain


@dataclass(frozen=True)
class MachineCode:
    """Resources and SASS of each kernel of a PTX text, by name."""

    resources: Mapping[str, EntryResources]
    sass: Mapping[str, str]


def machine_code_of(ptx: str, architecture: str, toolchain: Toolchain) -> MachineCode:
    """Assembles and disassembles a PTX text. raises ToolError if ptxas or nvdisasm is missing."""
    assembly = assemble(ptx, architecture, toolchain)
    return MachineCode(
        {entry.name: entry for entry in assembly.entries}, kernels_of(disassemble(assembly.cubin, toolchain))
    )


def price_kernel(
    kernel: Kernel,
    view: FusionView,
    module: ModuleOp,
    device: Device,
    code: MachineCode,
    data: Mapping[int, Array] | None = None,
) -> KernelCost:
    """The cost of one launch.

    view    the fusion of the kernel
    module  its IR at the stage "llvm-dialect"
    code    of the PTX text that contains the kernel
    data    number of a program's parameter -> the array to take for it; others are drawn
    raises  whatever the executor raises, and DataError for arrays that do not fit into this machine's memory
    """
    launch, resources = kernel.launch, code.resources[kernel.name]
    held = occupancy(device, launch.threads, resources.registers, resources.shared_bytes)
    arrays = arrays_for(view, kernel.arguments, data=data)
    traffic = measure_traffic(module, kernel.arguments, arrays, launch, held.blocks * device.cores)
    return kernel_cost(
        kernel.name,
        device,
        launch,
        resources,
        code.sass[kernel.name],
        traffic,
        needed_by(kernel, view, traffic),
    )


def needed_by(kernel: Kernel, view: FusionView, traffic: Traffic) -> NeededBytes:
    """The bytes that must move; where data decides which, and for arrays that are updated in place, those that the run touched."""
    read, written, is_exact = 0.0, 0.0, True
    by_maps = needed_of_parameters(view)
    for number, argument in enumerate(kernel.arguments):
        seen = traffic.arguments[number]
        is_shared = sum(other.slice_index == argument.slice_index for other in kernel.arguments) > 1
        if argument.written or is_shared:
            # Counted once: accesses to an array are recorded for its first argument.
            read += min(argument.bytes, seen.read_waves) if is_shared else 0
            written += min(argument.bytes, seen.write_waves) if is_shared else argument.bytes
            is_exact = is_exact and not is_shared
        elif (of_map := by_maps[number]) is None:
            read += min(argument.bytes, seen.read_waves)
            is_exact = False
        else:
            wanted = dtype(argument.array.dtype).size_bytes(of_map.elements)
            # Data decides what is read: the indices of a gather, for example.
            read += min(wanted, seen.read_waves)
            is_exact = is_exact and of_map.exact and wanted <= seen.read_waves
    return NeededBytes(read, written, is_exact)
