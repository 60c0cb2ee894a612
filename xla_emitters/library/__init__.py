"""Functions of a vendor's library, over arrays: matrix products, sorts, random bits, transforms, factorizations.

    call("sort", {"types": ["f32"], "dimension": 0, "keys": [...]}, [x], [("f32", (8,))])        xp=numpy
    call("sort", ..., xp=cupy)

A function is pure: arrays and a configuration of plain data in, arrays out. `runtime/ral` calls it for a host program, by name, on buffers.
Where NumPy and CuPy agree it is written once, over their module `xp`. Only NumPy, ml_dtypes and the package's errors are imported: a
bundle carries these files to machines without anything else.

    arguments       a call's arguments; types                gemm, cublas    matrix products
    function_table  the table of functions, and `call`     convolution, cudnn     sliding products
    random_bits     Philox, ThreeFry                       sort            by keys, by a comparator; top k
    fft             transforms                             linear_algebra  factorizations, triangular systems
    expect          comparisons of programs that check themselves
    kept_plans      what NVIDIA's libraries built for shapes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xla_emitters.library.arguments import Array, OnElements, Result

if TYPE_CHECKING:
    from xla_emitters.library.function_table import FUNCTIONS as FUNCTIONS
    from xla_emitters.library.function_table import LibraryFunction as LibraryFunction
    from xla_emitters.library.function_table import call as call

__all__ = ["FUNCTIONS", "Array", "LibraryFunction", "OnElements", "Result", "call"]


def __getattr__(name: str) -> Any:
    # Types of arguments are needed everywhere; the functions only by a program that calls one.
    if name in ("FUNCTIONS", "LibraryFunction", "call"):
        from xla_emitters.library import function_table

        found = globals()[name] = getattr(function_table, name)  # a loop calls small functions thousands of times
        return found
    raise AttributeError(f"module 'xla_emitters.library' has no attribute '{name}'")
