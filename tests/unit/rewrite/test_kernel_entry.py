"""What a kernel module states: its entry, its launch, its shared memory, at every stage."""

import pytest
from runtime.small_programs import GELU, TARGET

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError
from xla_emitters.graph.computation_steps import PlannedKernel
from xla_emitters.pipelines.compiler import compile_module, read_module
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.pipelines.recorder import Observer
from xla_emitters.program import LaunchDimensions
from xla_emitters.rewrite.kernel_entry import entry_of_kernel, launch_of, shared_bytes

HEAD = "gpu.known_block_size = array<i32: 64, 2, 1>, gpu.known_grid_size = array<i32: 7, 1, 1>"
TENSORS = f"""
func.func @fusion(%a: tensor<8xf32> {{llvm.align = 16 : index, xla.slice_index = 3 : index}}, %b: tensor<8xf32>)
    attributes {{xla.entry, {HEAD}}} {{ return }}
func.func private @other()
"""
LLVM = """
llvm.func @fusion(%a: !llvm.ptr) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64, 2, 1>, gpu.known_grid_size = array<i32: 7, 1, 1>} {
  llvm.return
}
llvm.func @__nv_tanhf(f32) -> f32
"""


@pytest.mark.tiny
@pytest.mark.parametrize("text", [TENSORS, LLVM])
def test_entry_and_launch(text: str) -> None:
    module = parse_ir(text)
    assert entry_of_kernel(module).sym_name.data == "fusion"
    assert launch_of(module) == LaunchDimensions((7, 1, 1), (64, 2, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func private @other()", "the module has 0 entry functions"),
        (
            TENSORS + TENSORS.replace("@fusion", "@second").replace("@other", "@third"),
            "the module has 2 entry functions",
        ),
        (TENSORS.replace("known_grid_size", "known_size"), "the launch of the entry is not known"),
        (
            TENSORS.replace("array<i32: 64, 2, 1>", "array<i32: 64>"),
            "the launch of the entry is not known",
        ),
    ],
)
def test_what_is_no_kernel(text: str, message: str) -> None:
    module = parse_ir(text)
    with pytest.raises(VerifyError, match=message) as raised:
        launch_of(module)
    assert "gpu.known_grid_size" in raised.value.help or "xla.entry" in raised.value.help


ATTRIBUTES = "gpu.known_grid_size = array<i32: 5, 2, 1>, gpu.known_block_size = array<i32: 64, 4, 2>"
THREAD = "%t = gpu.thread_id x {xla.range = [0 : index, 127 : index]}"
BLOCK = "%b = gpu.block_id y {xla.range = [0 : index, 9 : index]}"


def launch_said_by(body: str, attributes: str = "xla.entry") -> LaunchDimensions:
    module = parse_ir(f"func.func @main() attributes {{{attributes}}} {{\n{body}\nreturn\n}}")
    return launch_of(module)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (THREAD, LaunchDimensions((1, 1, 1), (128, 1, 1))),
        (THREAD + "\n" + BLOCK, LaunchDimensions((1, 10, 1), (128, 1, 1))),
        (
            "%0 = xla.workgroup_id x {xla.range = [0 : index, 959 : index]}\n"
            "scf.forall (%i, %j, %k) in (32, 4, 2) {\n}",
            LaunchDimensions((960, 1, 1), (32, 4, 2)),
        ),
        (
            "%t = nvvm.read.ptx.sreg.tid.z range <i32, 0, 4> : i32\n%b = nvvm.read.ptx.sreg.ctaid.x range <i32, 0, 7> : i32",
            LaunchDimensions((7, 1, 1), (1, 1, 4)),
        ),
    ],
)
def test_ids_say_their_extents(body: str, wanted: LaunchDimensions) -> None:
    assert launch_said_by(body) == wanted


def test_attributes_win() -> None:
    assert launch_said_by(THREAD, f"xla.entry, {ATTRIBUTES}") == LaunchDimensions((5, 2, 1), (64, 4, 2))
    half = "xla.entry, nvvm.reqntid = array<i32: 16, 1, 1>"
    assert launch_said_by(THREAD + "\n" + BLOCK, half) == LaunchDimensions((1, 10, 1), (16, 1, 1))


@pytest.mark.parametrize("body", ["", "%t = gpu.thread_id x", THREAD + "\n%b = gpu.block_id x"])
def test_what_says_no_launch_said_by(body):
    with pytest.raises(VerifyError, match="the launch of the entry is not known"):
        launch_said_by(body)


def test_every_pass_keeps_the_launch() -> None:
    """A launcher needs nothing but the IR of any stage."""
    found: set[tuple[str, LaunchDimensions]] = set()

    def observers(planned: PlannedKernel) -> Observer:
        return lambda name, stage, module: found.add((entry_of_kernel(module).sym_name.data, launch_of(module)))

    compile_module(
        read_module(GELU), CompileOptions(target=TARGET, stage="llvm-dialect", record="none"), observers=observers
    )
    assert found == {("fusion", LaunchDimensions((80, 1, 1), (128, 1, 1)))}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (TENSORS, 0),
        (
            """func.func @k() {
              %a = xla_gpu.allocate_shared : tensor<32x1x33xf32>
              %b = xla_gpu.allocate_shared : tensor<3x5xi4>
              return
            }""",
            4224 + 8,
        ),
        (
            """llvm.mlir.global private @a() {addr_space = 3 : i32} : !llvm.array<1056 x f32>
            llvm.mlir.global private @b() {addr_space = 3 : i32} : !llvm.array<3 x vector<2xf64>>
            llvm.mlir.global private @c() {addr_space = 3 : i32} : !llvm.array<7 x struct<(f32, f32)>>
            llvm.mlir.global private constant @table(dense<0> : tensor<9xi8>) {addr_space = 0 : i32} : !llvm.array<9 x i8>""",
            4224 + 48 + 56,
        ),
        (
            """gpu.module @m {
              gpu.func @k(%x: memref<?xf32, "gpu">) workgroup(%a: memref<64xf32, 3 : i64>, %b: memref<3xi1, 3 : i64>) kernel {
                gpu.return
              }
            }""",
            256 + 3,
        ),
    ],
)
def test_shared_bytes(text: str, wanted: int) -> None:
    assert shared_bytes(parse_ir(text)) == wanted
