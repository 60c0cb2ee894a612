"""Recognises files of `torch.export.save`: ZIP archives in which a member `archive_format` holds `pt2`."""

from __future__ import annotations

from pathlib import Path


def is_torch_archive(source: object) -> bool:
    """Whether `source` is the path of one. Texts, with a newline, and files that cannot be read are none."""
    if not isinstance(source, str | Path) or "\n" in str(source):
        return False
    try:
        with open(source, "rb") as file:
            if file.read(4) != b"PK\x03\x04":
                return False
            from zipfile import BadZipFile, ZipFile  # imported here: few files are archives

            try:
                with ZipFile(file) as archive:
                    formats = [name for name in archive.namelist() if name.endswith("/archive_format")]
                    return any(archive.read(name) == b"pt2" for name in formats)
            except BadZipFile:
                return False
    except (OSError, ValueError):
        return False
