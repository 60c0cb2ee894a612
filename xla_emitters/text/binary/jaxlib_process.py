"""Converts one file in a separate process: XLA's readers end their process on some damaged files.

    {"from": "bytecode", "to": "stablehlo"}\\n<bytes>     on stdin;   b"+" and the converted bytes on stdout, or
                                                          b"-" and the message of the reader, b"?" where jaxlib is missing

`export`, `bytecode` and `stablehlo` (text) are converted to each other but for the first; `proto` (an HloModuleProto) and `hlo` (text) too.
This file is run as a script and imports nothing from this package; the only other file that imports jaxlib is `explore/real_xla.py`.
Source: jaxlib's Python bindings of StableHLO's portable artifacts and of HloModule; the schema of jax.export's blobs for their vtable.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from io import BytesIO, StringIO
from struct import error as StructError
from struct import unpack_from
from typing import Any

CONVERTED, REFUSED, MISSING = b"+", b"-", b"?"
_PLATFORMS, _MODULE = 22, 30
"""Fields of jax.export's `Exported` table: their places in its vtable."""


class Refused(Exception):
    """What is wrong with the file."""


def main() -> int:
    """Answers one request; returns the exit code."""
    # XLA's messages must not be in the answer.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    header, _, data = sys.stdin.buffer.read().partition(b"\n")
    request = json.loads(header)
    if sys.platform == "linux":
        # A damaged file may ask for any amount of memory.
        resource = import_module("resource")
        resource.setrlimit(resource.RLIMIT_AS, (limit := (8 << 30) + 64 * len(data), limit))
    answer.write(answered(request["from"], request["to"], data))
    answer.flush()
    # XLA's threads need not be waited for.
    os._exit(0)


def answered(source: str, target: str, data: bytes) -> bytes:
    """The answer to a request."""
    try:
        return CONVERTED + _CONVERSIONS[source, target](data)
    except ImportError as error:
        return MISSING + str(error).encode()
    except (StructError, UnicodeDecodeError):
        return REFUSED + b"its tables are cut or damaged, or it is another file with MLIR bytecode inside"
    except Exception as error:  # of MLIR and XLA
        return REFUSED + (str(error) or type(error).__name__).encode()


def _context() -> Any:
    """A context of MLIR with the dialects that programs have."""
    ir = import_module("jaxlib.mlir.ir")
    registry = ir.DialectRegistry()
    import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for name in ("sdy", "chlo", "stablehlo"):
        import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(context)
    import_module("jaxlib.mlir.dialects.mhlo").register_mhlo_dialect(context)
    context.allow_unregistered_dialects = True
    return context


def _read_bytecode(context: Any, data: bytes) -> Any:
    """The module in bytecode of StableHLO, or in a portable artifact, whose ops VHLO has."""
    stablehlo = import_module("jaxlib.mlir.dialects.stablehlo")
    return stablehlo.deserialize_portable_artifact(context, data)


def _text(module: Any) -> bytes:
    out = StringIO()
    module.operation.print(file=out, enable_debug_info=True)
    return out.getvalue().encode()


def _of_bytecode(data: bytes) -> bytes:
    with _context() as context:
        return _text(_read_bytecode(context, data))


def _of_export(data: bytes) -> bytes:
    """The program in a blob of jax.export; of one for several platforms, the program for CUDA."""
    artifact, platforms = _exported(data)
    ir, stablehlo = import_module("jaxlib.mlir.ir"), import_module("jaxlib.mlir.dialects.stablehlo")
    with _context() as context, ir.Location.unknown():
        module = _read_bytecode(context, artifact)
        main = next(op for op in module.body.operations if ir.StringAttr(op.attributes["sym_name"]).value == "main")
        block, kind = main.regions[0].blocks[0], ir.TypeAttr(main.attributes["function_type"]).value
        if len(platforms) > 1 and "_platform_index" in str(main.attributes["arg_attrs"][0]):
            if "cuda" not in platforms:
                raise Refused(f"it is for {', '.join(platforms)}: none of them is cuda")
            index, first = platforms.index("cuda"), block.arguments[0]
            number = ir.DenseElementsAttr.get(memoryview(index.to_bytes(4, "little")), type=first.type)
            with ir.InsertionPoint.at_block_begin(block):
                first.replace_all_uses_with(stablehlo.ConstantOp(number).result)
            block.erase_argument(0)
            main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kind.inputs[1:], kind.results))
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(list(main.attributes["arg_attrs"])[1:])
        return _text(module)


def _exported(data: bytes) -> tuple[bytes, list[str]]:
    """The module of jax.export's blob, and the platforms that it is for. raises Refused, struct.error where it is damaged"""
    (table,) = unpack_from("<I", data)
    vtable = table - unpack_from("<i", data, table)[0]

    def vector(field: int) -> int:
        (offset,) = unpack_from("<H", data, vtable + field) if field < unpack_from("<H", data, vtable)[0] else (0,)
        if not offset:
            raise Refused("a field of jax.export is missing")
        return table + offset + unpack_from("<I", data, table + offset)[0]

    def part(at: int) -> bytes:
        (size,) = unpack_from("<I", data, at)
        if at + 4 + size > len(data):
            raise Refused("it is cut")
        return data[at + 4 : at + 4 + size]

    at = vector(_PLATFORMS)
    (count,) = unpack_from("<I", data, at)
    if 4 * count > len(data):
        raise Refused("it is cut")
    places = [at + 4 + 4 * number for number in range(count)]
    return part(vector(_MODULE)), [part(place + unpack_from("<I", data, place)[0]).decode() for place in places]


def _to_bytecode(data: bytes) -> bytes:
    """A portable artifact of StableHLO text, for the oldest StableHLO that has its ops; else MLIR's bytecode."""
    ir, stablehlo = import_module("jaxlib.mlir.ir"), import_module("jaxlib.mlir.dialects.stablehlo")
    with _context():
        module = ir.Module.parse(data.decode())
        try:
            return stablehlo.serialize_portable_artifact(module, stablehlo.get_minimum_version())
        except Exception:  # an op is newer than that
            pass
        try:
            return stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version())
        except Exception:  # an op that VHLO lacks, of another dialect
            out = BytesIO()
            module.operation.write_bytecode(file=out)
            return out.getvalue()


def _of_proto(data: bytes) -> bytes:
    return whole_text(import_module("jaxlib._hlo").HloModule.from_serialized_hlo_module_proto(data)).encode()


def whole_text(module: Any) -> str:
    """jaxlib's HloModule as text with all elements of constants, which its own printer leaves out. raises ImportError without jaxlib."""
    options = import_module("jaxlib._hlo").HloPrintOptions()
    options.print_large_constants = True
    return with_shardings(module.to_string(options), module)


def with_shardings(text: str, module: Any) -> str:
    """HLO text with the shardings of ENTRY's parameters, and of the results on its ROOT, as far as jaxlib's module has some.

    XLA's own text has those of parameters alone, and in jaxlib 0.12 none of a module behind its passes.
    """
    shown, start = import_module("jaxlib._hlo").HloSharding.from_proto, text.find("\nENTRY ")
    rows = [
        (rf"\S+ = [^\n]* parameter\({number}\)", proto)
        for number, proto in enumerate(module.spmd_parameters_shardings or ())
    ]
    rows += [(r"ROOT [^\n]*", proto) for proto in [module.spmd_output_sharding] if proto is not None]
    entry = text[start:]
    for line, proto in rows if start >= 0 else ():
        said = f", sharding={shown(proto)}"
        entry = re.sub(
            rf"^( +{line})(?![^\n]* sharding=)",
            lambda found, said=said: f"{found[1]}{said}",
            entry,
            count=1,
            flags=re.M,
        )
    return text[:start] + entry if start >= 0 else text


def _to_proto(data: bytes) -> bytes:
    return import_module("jaxlib._hlo").hlo_module_from_text(data.decode()).as_serialized_hlo_module_proto()


_CONVERSIONS: dict[tuple[str, str], Callable[[bytes], bytes]] = {
    ("bytecode", "stablehlo"): _of_bytecode,
    ("export", "stablehlo"): _of_export,
    ("stablehlo", "bytecode"): _to_bytecode,
    ("proto", "hlo"): _of_proto,
    ("hlo", "proto"): _to_proto,
}


if __name__ == "__main__":
    sys.path[:] = sys.argv[1:]
    sys.exit(main())
