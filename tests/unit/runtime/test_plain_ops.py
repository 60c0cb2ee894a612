"""Calls of a program in a bundle: assertions, constants, convolutions with padding as an operand."""

import numpy as np
import pytest

from xla_emitters.errors import DataError
from xla_emitters.program import ArraySpec, LibraryCall
from xla_emitters.runtime.plain_ops import plain_function


def test_an_assertion_stops_with_its_numbers_in_its_words() -> None:
    stop = plain_function(LibraryCall("hlo.shape-assertion", "a", (), (), {"message": "{0} is not {1}"}))
    stop(np.array(True), np.array(3), np.array(3))
    with pytest.raises(DataError, match="3 is not 4"):
        stop(np.array(False), np.array(3), np.array(4))


def test_a_constant_is_copied() -> None:
    held, out = np.array([1.0, 2.0], np.float32), np.empty(2, np.float32)
    plain_function(LibraryCall("hlo.constant", "c", (), (ArraySpec.sized("f32", (2,)),)), lambda: held)(out)
    assert out.tolist() == [1, 2]


def test_a_convolution_takes_its_padding_from_an_operand() -> None:
    along = {"size": 0, "stride": 1, "pad": [0, 0], "base_dilation": 1, "window_dilation": 1, "reversed": False}
    config = {
        "types": ["f32", "f32"],
        "operands": ["image", "kernel"],
        "outputs": ["result"],
        "kind": "forward",
        "labels": ["bf0", "oi0", "bf0"],
        "window": [along],
        "feature_groups": 1,
        "batch_groups": 1,
        "scale": 1,
        "side_scale": 0,
        "activation": "none",
        "slope": 0,
    }
    operands = tuple(ArraySpec.sized(*each) for each in (("f32", (1, 1, 4)), ("f32", (1, 1, 3)), ("s32", (1, 2))))
    call = LibraryCall("convolution", "c", operands, (ArraySpec.sized("f32", (1, 1, None)),), config)
    x, w = np.arange(4, dtype=np.float32), np.array([1, 2, 3], np.float32)
    out = np.empty((1, 1, 5), np.float32)
    plain_function(call)(x.reshape(1, 1, 4), w.reshape(1, 1, 3), np.array([[1, 2]], np.int32), out)
    assert out.reshape(-1).tolist() == np.convolve(np.pad(x, (1, 2)), w[::-1], "valid").tolist()
