"""PTX of parts is joined to the PTX of the whole, byte for byte, or not at all."""

from functools import cache

import pytest

from xla_emitters.lowering.toolchain.ptx_parts import join_ptx
from xla_emitters.pipelines.compiler import compile

SHAPE = "f32[512,1024]"
ADD = "add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n"


def module(opcodes: dict[str, str]) -> str:
    """HLO text: for each name a kernel that sums the rows of an elementwise op; with shared memory and loops."""
    functions = [
        f"f_{name} {{\n p = {SHAPE} parameter(0)\n z = f32[] constant(0)\n x = {SHAPE} {opcode}(p)\n"
        f" ROOT r = f32[512] reduce(x, z), dimensions={{1}}, to_apply=add\n}}\n"
        for name, opcode in opcodes.items()
    ]
    calls = [f" {name} = f32[512] fusion(p), kind=kInput, calls=f_{name}\n" for name in opcodes]
    results = f" ROOT t = ({', '.join('f32[512]' for _ in opcodes)}) tuple({', '.join(opcodes)})\n"
    return f"HloModule m\n{ADD}{''.join(functions)}ENTRY e {{\n p = {SHAPE} parameter(0)\n{''.join(calls)}{results}}}\n"


KERNELS = {"k0": "negate", "k1": "tanh", "k2": "abs", "k3": "exponential", "k4": "negate"}


@cache
def ptx(*names: str) -> str:
    """Of some of the kernels."""
    return compile(module({name: KERNELS[name] for name in names}), record="none").kernels[0].ptx


@pytest.mark.parametrize("first", [("k0", "k2", "k4"), ("k3",), ("k1", "k4")])
def test_parts_are_joined_to_the_whole(first: tuple[str, ...]) -> None:
    whole = ptx(*KERNELS)
    assert whole.count("demoted variable") == 5
    assert "$L__BB4_" in whole
    others = [name for name in KERNELS if name not in first]
    parts = [ptx(*first), ptx(*others)]
    # Alone each part names its own shared variables; the compiler names those of all kernels first.
    names = iter(f"shared_0_{n}" if n else "shared_0" for n in range(5))
    final = {name: next(names) for name in KERNELS}
    parts = [with_names(part, [final[name] for name in own]) for part, own in zip(parts, (first, others), strict=True)]
    assert join_ptx(parts, tuple(KERNELS)) == whole


def with_names(part: str, names: list[str]) -> str:
    """The shared variables `shared_0`, `shared_0_1` ... of a part, renamed."""
    for number in reversed(range(len(names))):
        old = f"shared_0_{number}" if number else "shared_0"
        for end in (" has", "[", "+", "]", ";"):
            part = part.replace(f"{old}{end}", f"<{number}>{end}")
    for number, name in enumerate(names):
        part = part.replace(f"<{number}>", name)
    return part


PART = "// LLVM\n.target sm_90\n\t// .globl\ta\n\n.visible .entry a(\n)\n{\n\tret;\n\n}\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\n\n.visible", "a\n.global .align 4 .b8 table[4] = {1, 2, 3, 4};\n\n.visible"),
        ("a\n\n.visible", "a\n.func  f\n(\n)\n;\n\n.visible"),
        ("a\n\n.visible", "a\n// v has been demoted\n\n.visible"),
        ("\n}\n", "\n}\n.func  f(\n)\n{\n\tret;\n\n}\n"),
        ("\n}\n", "\n}\n\t.section\t.debug_abbrev\n"),
        ("\tret;", "$L__tmp0:\n\tret;"),
        ("sm_90", "sm_80"),
    ],
)
def test_a_part_with_more_than_entries_is_not_joined(old: str, new: str) -> None:
    other = PART.replace("a\n", "b\n").replace("a(", "b(")
    assert join_ptx([PART, other], "ab") is not None
    assert join_ptx([PART.replace(old, new), other], "ab") is None


def test_every_kernel_is_in_a_part() -> None:
    assert join_ptx([PART], "ab") is None
    assert join_ptx([PART], "a") == PART
