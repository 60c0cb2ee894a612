"""Fourier transforms over the last one to three dimensions.

    FFT    complex -> complex          IFFT   its inverse, divided by the number of elements
    RFFT   real [..., n] -> complex [..., n // 2 + 1]          IRFFT  its inverse, to real [..., n]

In the precision of the operand. NumPy's pocketfft, or cuFFT. Source: docs/reference/1 6.8 "fft".
"""

from __future__ import annotations

from xla_emitters.library.arguments import Array, LibraryArguments


def fft(arguments: LibraryArguments) -> list[Array]:
    """The transform of the one operand."""
    config, xp, (operand,) = arguments.config, arguments.xp, arguments.operands
    length = config["length"]
    axes = tuple(range(operand.ndim - len(length), operand.ndim))
    if not all(arguments.results[0][1]) or not operand.size:
        return [arguments.zeros(0)]
    transforms = {"FFT": xp.fft.fftn, "IFFT": xp.fft.ifftn, "RFFT": xp.fft.rfftn, "IRFFT": xp.fft.irfftn}
    return [arguments.result(0, transforms[config["kind"]](operand, length, axes))]
