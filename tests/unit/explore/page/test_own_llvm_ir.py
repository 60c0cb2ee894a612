"""A kernel's page has the LLVM IR of that kernel alone, with what it names."""

from xla_emitters.explore.page.own_code import own_steps
from xla_emitters.trace import Step, Trace

TEXT = """target triple = "nvptx64-nvidia-cuda"

@tile = private addrspace(3) global [4 x i32] undef
@other = private addrspace(3) global [4 x i32] undef

define ptx_kernel void @a(ptr %x) #0 {
  call void @helper(), !range !1
  ret void
}

define ptx_kernel void @b(ptr %x) #1 {
  store i32 0, ptr addrspace(3) @other
  ret void
}

define internal void @helper() {
  store i32 0, ptr addrspace(3) @tile
  ret void
}

attributes #0 = { nounwind }
attributes #1 = { convergent }

!1 = !{i32 0, i32 4}
!2 = !{i32 0, i32 8}
"""


def test_functions_globals_attributes_and_metadata_of_one_kernel() -> None:
    trace = Trace("a")
    trace.steps.append(Step("llvm", "llvm", TEXT, 0.0))
    (step,) = own_steps(trace, "a")
    assert step.ir is not None
    for word in ("triple", "@a(", "@helper() {", "@tile =", "attributes #0", "!1 ="):
        assert word in step.ir
    for word in ("@b(", "@other", "attributes #1", "!2 ="):
        assert word not in step.ir


def test_a_text_of_one_kernel_is_left_as_it_is() -> None:
    alone = TEXT.replace("ptx_kernel void @b", "void @b")
    trace = Trace("a")
    trace.steps.append(Step("llvm", "llvm", alone, 0.0))
    assert [step.ir for step in own_steps(trace, "a")] == [alone]
