"""Loops and branches of `IrWriter`, compiled and called."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from xla_emitters.lowering.host_code import HostCode
from xla_emitters.lowering.host_cpu import host_cpu
from xla_emitters.lowering.ir_writer import IrWriter

pytest.importorskip("llvmlite", reason="llvmlite is not installed")


def test_nested_loops_carry_values_and_branch() -> None:
    """words[0] becomes the sum of i * j over i < words[0], j < i with j odd."""
    w = IrWriter()
    with w.function("define void @sums(ptr %words)"):
        count = w.load("i64", "%words")
        with w.loop(0, count, 1, [("i64", 0)]) as outer:
            with w.loop(1, outer.index, 2, [("i64", outer.values[0])]) as inner:
                inner.carry([w.add(inner.values[0], w.multiply(outer.index, inner.index))])
            with w.when(w.compare("eq", outer.index, 3)):
                w.store("i64", 7, "%words", 1)
            outer.carry(inner.values)
        w.store("i64", outer.values[0], "%words")
    words = np.array([10, 0], np.int64)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(HostCode(w.text, host_cpu()).address("sums"))(words.ctypes.data)
    assert words.tolist() == [sum(i * j for i in range(10) for j in range(1, i, 2)), 7]


def test_a_vector_has_one_value_in_all_lanes() -> None:
    w = IrWriter()
    with w.function("define void @fill(ptr %to, float %x)"):
        w.store("<4 x float>", w.splat(4, "float", "%x"), "%to")
    to = np.zeros(6, np.float32)
    fill = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_float)(HostCode(w.text, host_cpu()).address("fill"))
    fill(to[1:].ctypes.data, 2.5)
    assert to.tolist() == [0, 2.5, 2.5, 2.5, 2.5, 0]
