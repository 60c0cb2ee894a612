"""`run FILE.ptx` and `check FILE.ptx`, and the same with LLVM IR."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import called, messages, printed, written

from xla_emitters.errors import DataError
from xla_emitters.explore.check.any_llvm_ir import LlvmIrKernel
from xla_emitters.explore.check.any_ptx import GivenKernel, PtxKernel, launch_of
from xla_emitters.program import LaunchDimensions
from xla_emitters.tools.main import main

TEXT = """.version 8.6
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y, .param .u32 n, .param .f32 by)
{
  .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n]; ld.param.f32 %f1, [by];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p, %r5, %r1;
  @%p bra DONE;
  mul.wide.s32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  mul.f32 %f3, %f2, %f1;
  st.global.f32 [%rd5], %f3;
DONE: ret;
}
"""

LLVM_IR = """define ptx_kernel void @scale(ptr %x, ptr %y, i32 %n, float %by) {
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %start = shl i32 %block, 7
  %i = or disjoint i32 %start, %thread
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %then, label %done
then:
  %from = getelementptr inbounds float, ptr %x, i32 %i
  %v = load float, ptr %from, align 4
  %w = fmul float %v, %by
  %to = getelementptr inbounds float, ptr %y, i32 %i
  store float %w, ptr %to, align 4
  br label %done
done:
  ret void
}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scale.ptx").write_text(TEXT)
    Path("scale.ll").write_text(LLVM_IR)
    x, numbers = np.arange(1000, dtype=np.float32), {"p2": np.int32(1000), "p3": np.float32(3)}
    np.savez("in.npz", p0=x, p1=np.zeros(1000, np.float32), **numbers)
    np.savez("short.npz", p0=x, p1=np.zeros(900, np.float32), **numbers)


@pytest.mark.usefixtures("files")
def test_a_variable_of_the_module_is_given_by_its_name() -> None:
    """As a program copies to a symbol before it launches the kernel."""
    text = TEXT.replace(".visible .entry", ".const .align 4 .f32 factor;\n.visible .entry").replace(
        "%f2, %f1;", "%f2, %f4;"
    )
    Path("scale.ptx").write_text(
        text.replace("%f<4>", "%f<5>").replace("setp.ge", "ld.const.f32 %f4, [factor]; setp.ge")
    )
    given = dict(np.load("in.npz"))
    np.savez("in.npz", **given, factor=np.float32(7))
    words = ["scale.ptx", "--launch", "8x128", "--inputs", "in.npz"]
    printed("run", *words, "--outputs", "out.npz")
    np.testing.assert_array_equal(np.load("out.npz")["r1"], np.arange(1000) * 7)
    np.savez("in.npz", **given, factor=np.zeros(3))
    code, out, error = called("check", *words)
    assert (code, "the variable factor has 4 bytes, but the array is float64[3]" in out + error) == (1, True)


@pytest.mark.usefixtures("files")
def test_a_kernel_is_run() -> None:
    words = ["run", "scale.ptx", "--launch", "8x128", "--inputs", "in.npz", "--outputs", "out.npz", "--access-report"]
    out = printed(*words)
    assert out.startswith("r0 = f32[1000]\nr1 = f32[1000]\nran 8x1x1 blocks of 128x1x1 threads on the CPU")
    assert "scale.ptx:12:3" in out
    with np.load("out.npz") as found:
        assert found.files == ["r0", "r1"]
        np.testing.assert_array_equal(found["r0"], np.arange(1000))
        np.testing.assert_array_equal(found["r1"], np.arange(1000) * 3)


@pytest.mark.usefixtures("files")
def test_llvm_ir_is_run_and_checked() -> None:
    assert main(["run", "scale.ll", "--launch", "8x128", "--inputs", "in.npz", "--outputs", "out.npz"]) == 0
    with np.load("out.npz") as found:
        np.testing.assert_array_equal(found["r1"], np.arange(1000) * 3)
    assert "scale.ll:13:3: error: [simt] llvm.store in block 7, thread 4 writes index 900" in messages(
        3, "check", "scale.ll", "--launch", "8x128", "--inputs", "short.npz"
    )
    assert "scale.ll is LLVM IR, which does not say how it is launched" in messages(
        2, "run", "scale.ll", "--inputs", "in.npz"
    )
    assert "p0: !llvm.ptr x, p1: !llvm.ptr y, p2: i32 n, p3: f32 by" in messages(
        1, "run", "scale.ll", "--launch", "8x128"
    )


@pytest.mark.usefixtures("files")
def test_a_kernel_is_checked_for_faults() -> None:
    out = printed("check", "scale.ptx", "--launch", "8x128", "--inputs", "in.npz")
    assert out == "scale.ptx  ok  8 blocks of 128 threads without a fault; there is no reference for numbers\n"
    code, out, err = called("check", "scale.ptx", "--launch", "8x128", "--inputs", "short.npz")
    assert code == 3
    assert "writes index 900 of argument 1" in out
    assert "scale.ptx:14:3: error:" in err
    assert main(["run", "scale.ptx", "--launch", "8x128", "--inputs", "short.npz"]) == 1


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--inputs", "in.npz"], 2, "does not say how it is launched"),
        (["--inputs", "in.npz", "--launch", "8"], 2, "'8' is no launch"),
        (["--inputs", "in.npz", "--launch", "8x2048"], 2, "beyond what a GPU launches"),
        (["--launch", "8x128"], 1, "needs --inputs: it does not say how large its arrays are"),
        (
            ["--inputs", "in.npz", "--launch", "8x128", "--entry", "other"],
            1,
            "must have a kernel 'other'; it has: scale",
        ),
    ],
)
def test_what_is_missing_is_said(words: list[str], code: int, said: str) -> None:
    assert said in messages(code, "run", "scale.ptx", *words)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "words",
    [
        *(["run", *each] for each in (["--stage", "hlo"], ["--platform", "cuda"], ["--json"], ["--sizes", "n=3"])),
        *(["check", *each] for each in (["--stages", "flat"], ["--atol", "1"], ["--fusion", "f"], ["--seed", "1"])),
    ],
)
def test_options_that_would_be_ignored_are_refused(words: list[str]) -> None:
    given = ["scale.ptx", "--launch", "8x128", "--inputs", "in.npz"]
    assert f"{words[1]} is for modules and programs; scale.ptx is PTX or LLVM IR" in messages(2, *words, *given)
    if words[0] == "run":
        assert main(["run", "--platform", "cpu", "--max-memory", "1G", "--sanitize", *given]) == 0


MAPPED = """.version 8.6
.target sm_90
.address_size 64
.visible .entry turn(.param .align 64 .b8 from[128], .param .u64 map, .param .u64 to)
.reqnctapercluster 2
{
  .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>; .shared .align 128 .b8 box[512]; .shared .align 8 .b64 bar;
  mov.b64 %rd1, from; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [map]; mov.u32 %r1, %cluster_ctarank; shl.b32 %r2, %r1, 3;
  mov.u32 %r3, 0; mov.u32 %r4, %tid.x; setp.eq.u32 %p1, %r4, 0; @!%p1 bra END;
  mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
  cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [box], [%rd1, {%r3, %r2}], [bar];
W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
  xor.b32 %r2, %r2, 8; cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd2, {%r3, %r2}], [box];
END: ret;
}
"""


def test_tensor_maps_and_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One map has its array for itself, the other one names the array of another parameter."""
    monkeypatch.chdir(tmp_path)
    Path("turn.ptx").write_text(MAPPED)
    array = np.arange(256, dtype=np.float32).reshape(16, 16)
    np.savez("in.npz", p0=array, p2=np.zeros((16, 16), np.float32))
    words = ["turn.ptx", "--launch", "2x32/2", "--inputs", "in.npz", "--tensor-map", "p0,box=8x16,swizzle=64"]
    words += ["--tensor-map", "p1=p2:f32[16,16],box=8x16,swizzle=64"]
    assert main(["check", *words]) == 0
    assert main(["run", *words, "--outputs", "out.npz"]) == 0
    with np.load("out.npz") as found:
        assert sorted(found.files) == ["r0", "r2"]
        np.testing.assert_array_equal(found["r2"], np.concatenate([array[8:], array[:8]]))
    assert "is no tensor map" in messages(2, "run", *words, "--tensor-map", "p0,box")
    said = messages(1, "run", *words[:-1], "p1=p2,box=8x17")
    assert "are no multiple of 16" in said


@pytest.mark.parametrize(("file", "text", "kind"), [("k.ptx", TEXT, "PTX"), ("k.ll", LLVM_IR, "LLVM IR")])
@pytest.mark.parametrize("verb", ["compile", "list", "explain", "cost", "maps"])
def test_verbs_of_hlo_text_say_who_takes_it(verb: str, file: str, text: str, kind: str, tmp_path: Path) -> None:
    path = written(tmp_path / file, text)
    said = messages(1, verb, path)
    assert f"{file}:1:1: error: [hlo.parse] this is {kind}, not HLO text" in said
    assert f"the commands run and check take it, in a file FILE{path.suffix}, with --launch" in said


@pytest.mark.parametrize("kernel", [PtxKernel.read(TEXT, "k.ptx"), LlvmIrKernel.read(LLVM_IR, "k.ll")])
def test_arrays_and_numbers_of_any_byte_order_from_python(kernel: GivenKernel) -> None:
    x, launch = np.arange(100, dtype=np.float32), launch_of("1x128")[0]
    numbers = [np.array(100, ">i4"), np.array(3, ">f4")]
    after = kernel.run([x.astype(">f4"), np.zeros(100, np.float32), *numbers], launch)
    np.testing.assert_array_equal(after[1], x * 3)
    with pytest.raises(DataError, match=r"argument 0 \(p0\) is a masked array"):
        kernel.run([np.ma.array(x, mask=x > 50), np.zeros(100, np.float32), *numbers], launch)


STRUCTURE = """.version 8.6
.target sm_90
.address_size 64
.visible .entry spread(.param .align 8 .b8 given[40], .param .u64 rows)
{
  .reg .b32 %r<6>; .reg .f32 %f<3>; .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [given+8]; ld.param.u64 %rd2, [given+16]; ld.param.u64 %rd3, [rows]; mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd1, %rd4; ld.global.f32 %f1, [%rd5];
  add.f32 %f2, %f1, %f1; add.s64 %rd6, %rd2, %rd4; st.global.f32 [%rd6], %f2;
  and.b32 %r2, %r1, 1; mul.wide.u32 %rd7, %r2, 8; add.s64 %rd7, %rd3, %rd7; ld.global.u64 %rd7, [%rd7];
  shr.u32 %r3, %r1, 1; mul.wide.u32 %rd8, %r3, 4; add.s64 %rd8, %rd7, %rd8;
  st.global.f32 [%rd8], %f1;
  ret;
}
"""


@pytest.fixture
def structure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray[Any, Any]]:
    """Pointers in a parameter that is bytes, and in an array."""
    monkeypatch.chdir(tmp_path)
    Path("spread.ptx").write_text(STRUCTURE)
    x, zeros = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    found = {"p0": np.zeros(40, np.uint8), "p0+8": x, "p0+16": zeros, "p1": np.zeros(2, np.int64)}
    return found | {"p1+0": zeros[:32], "p1+8": zeros[:32]}


def test_pointers_in_structures_and_in_arrays(structure: dict[str, np.ndarray[Any, Any]]) -> None:
    np.savez("in.npz", allow_pickle=False, **structure)
    words = ["spread.ptx", "--launch", "1x64", "--inputs", "in.npz"]
    assert "r0+16 = f32[64]\n" in printed("run", *words, "--outputs", "out.npz")
    x = structure["p0+8"]
    with np.load("out.npz") as found:
        assert found.files == ["r1", "r0+8", "r0+16", "r1+0", "r1+8"]
        for name, wanted in (("r0+16", 2 * x), ("r1+0", x[::2]), ("r1+8", x[1::2])):
            np.testing.assert_array_equal(found[name], wanted)
    np.savez("in.npz", allow_pickle=False, **structure | {"p1+8": np.zeros(31, np.float32)})
    said = "spread.ptx:12:3: error: [simt] llvm.store in block 0, thread 63 writes index 31 of the array of p1+8, which has 31"
    assert said in called("check", *words)[2]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("p0+40", "p0+40: 8 bytes at byte 40 do not fit the 40 bytes there"),
        ("p1+4", "p1+4: 8 bytes at byte 4 do not fit the 16 bytes there"),
        ("p2+0", "p2+0: p2 is no array"),
        ("p1+16+0", "p1+16+0: p1+16 is no array"),
    ],
)
def test_a_pointer_without_a_place(structure: dict[str, np.ndarray[Any, Any]], name: str, said: str) -> None:
    np.savez("in.npz", allow_pickle=False, **structure | {name: np.zeros(4, np.float32)})
    assert said in messages(1, "run", "spread.ptx", "--launch", "1x64", "--inputs", "in.npz")


@pytest.mark.parametrize(
    "address", ["mov.b64 %rd1, from+64;", "mov.b32 %r1, from; add.s32 %r1, %r1, 64; cvt.u64.u32 %rd1, %r1;"]
)
def test_a_structure_with_a_tensor_map(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton keeps addresses of parameters in 32 bits, as of all windows."""
    monkeypatch.chdir(tmp_path)
    mapped = MAPPED.replace("from[128]", "from[192]").replace("mov.b64 %rd1, from;", address)
    Path("turn.ptx").write_text(mapped)
    array = np.arange(256, dtype=np.float32).reshape(16, 16)
    np.savez(
        "in.npz",
        allow_pickle=False,
        **{"p0": np.zeros(192, np.uint8), "p0+64": array, "p2": np.zeros((16, 16), np.float32)},
    )
    words = ["turn.ptx", "--launch", "2x32/2", "--inputs", "in.npz", "--tensor-map", "p0+64,box=8x16,swizzle=64"]
    words += ["--tensor-map", "p1=p2,box=8x16,swizzle=64"]
    assert main(["run", *words, "--outputs", "out.npz"]) == 0
    with np.load("out.npz") as found:
        np.testing.assert_array_equal(found["r2"], np.concatenate([array[8:], array[:8]]))
    assert "p0+128: 128 bytes at byte 128 do not fit the 192 bytes there" in messages(
        1, "run", *words, "--tensor-map", "p0+128=p2,box=8x16"
    )


def test_llvm_ir_with_an_array_of_pointers() -> None:
    text = """define ptx_kernel void @k(ptr %rows) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr inbounds ptr, ptr %rows, i32 %i
  %row = load ptr, ptr %at, align 8
  store float 3.0, ptr %row, align 4
  ret void
}
"""
    inside = {(0, 0): np.zeros(2, np.float32), (0, 8): np.ones(2, np.float32)}
    kernel = LlvmIrKernel.read(text, "k.ll")
    found = kernel.run([np.zeros(2, np.int64)], LaunchDimensions((1, 1, 1), (2, 1, 1)), inside=inside)
    np.testing.assert_array_equal(found[0, 0], [3, 0])
    np.testing.assert_array_equal(found[0, 8], [3, 1])
