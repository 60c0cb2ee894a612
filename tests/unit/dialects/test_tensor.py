"""`tensor.parallel_insert_slice` stands where the threads of a forall say what they write; `test_scf.py` has it in its loop."""

from __future__ import annotations

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.errors import VerifyError


def test_it_stands_nowhere_else():
    text = """
      func.func @f(%t: tensor<8xf32>) {
        tensor.parallel_insert_slice %t into %t[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
        return
      }"""
    with pytest.raises(VerifyError, match=r"expects parent op 'scf\.forall\.in_parallel'"):
        parse_ir(text)
