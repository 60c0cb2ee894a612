"""Times and bytes as text, with their units."""

from __future__ import annotations


def microseconds(time: float) -> str:
    """
    >>> microseconds(0.123), microseconds(12.34), microseconds(2410.7)
    ('0.12 us', '12.3 us', '2,411 us')
    """
    digits = 2 if time < 10 else 1 if time < 100 else 0
    return f"{time:,.{digits}f} us"


def bytes_text(number: float) -> str:
    """Bytes in the unit of data sheets: 1 kB is 1,000 bytes.

    >>> bytes_text(512), bytes_text(16_384), bytes_text(50_331_648)
    ('512 B', '16.4 kB', '50.3 MB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} B"
