"""Each pass on the host keeps the bits: the executor runs what every one of them leaves, up to the rewriting of calls for C."""

import pytest
from long_lists import but_long
from runtime.programs_table import programs

from xla_emitters.dialects.context import make_context
from xla_emitters.dialects.mlir import gpu
from xla_emitters.dynamic.host.disc_convert_memory_marker import DiscConvertMemoryMarkerPass
from xla_emitters.dynamic.host.disc_lower_host_integers import DiscLowerHostIntegersPass
from xla_emitters.lowering.convert_scf_to_cf import ConvertScfToCfPass
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.program_passes import HOST_BY_LLVM, PROGRAM_HOST
from xla_emitters.pipelines.program_runs import is_host_program, load_any
from xla_emitters.rewrite.kernel_pass import run_pass
from xla_emitters.runtime.arrays import same_bits
from xla_emitters.runtime.ral.simt_kernels import SimtKernels

ROWS = (*PROGRAM_HOST, *HOST_BY_LLVM[:3])
SHORT = (
    # A loop and donation, convolutions of the library, sorts, products and branches.
    *("donated_step", "half_channels_last", "largest_two", "mixture"),
)


def test_the_list_ends_where_buffers_become_pointers() -> None:
    made = [row.make(CompileOptions()) for row in HOST_BY_LLVM[:3]]
    assert [type(each) for each in made] == [DiscConvertMemoryMarkerPass, ConvertScfToCfPass, DiscLowerHostIntegersPass]
    assert "disc-rewrite-ral-api" in [row.make(CompileOptions()).name for row in HOST_BY_LLVM[3:]]


@pytest.mark.parametrize("name", but_long(list(programs()), [name for name in programs() if name not in SHORT]))
def test_every_pass_on_the_host_keeps_the_bits(name: str) -> None:
    known, context, options = programs()[name], make_context(), CompileOptions()
    program = known.compiled()
    module = program.compilation.lowering.at("kernels").clone()
    own = {
        function.sym_name.data: holder
        for holder in module.walk()
        if isinstance(holder, gpu.ModuleOp)
        for function in holder.walk()
        if isinstance(function, gpu.FuncOp)
    }
    kernels = SimtKernels(lambda name, _: type(module)([own[name].clone()]))
    arrays = program.compilation.checked(known.inputs(known.case.sizes[-1]))
    wanted = program.run(arrays, "kernels")
    before, hosts = str(module), 0
    for row in ROWS:
        each = row.make(options)
        run_pass(each, context, module, verify=True)
        if (after := str(module)) == before:
            continue
        before, hosts = after, hosts + is_host_program(module)
        loaded = load_any(module.clone(), kernels)
        given = [array.copy() if number in loaded.donated else array for number, array in enumerate(arrays)]
        found = loaded.run_on_garbage(given)
        assert len(found) == len(wanted)
        assert all(same_bits(one, other) for one, other in zip(found, wanted, strict=True)), each.name
    assert hosts >= 4
