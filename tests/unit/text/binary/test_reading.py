"""Binary forms of programs, made by JAX: read to the numbers of JAX on the CPU; damaged ones end in a message."""

import faulthandler
import gzip
import io
import random
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xla_emitters as xe
from xla_emitters.errors import ParseError, ToolError, XlaEmittersError
from xla_emitters.pipelines.kept_programs import read_text
from xla_emitters.support.decoding import BinaryKind, kind_of, saved_module
from xla_emitters.text.binary import reading
from xla_emitters.text.binary.jaxlib_process import CONVERTED, answered, with_shardings
from xla_emitters.text.binary.reading import read_binary, written
from xla_emitters.text.stablehlo import is_stablehlo
from xla_emitters.tools.workers import isolated

jax = pytest.importorskip("jax", reason="the extra [jax] is not installed")
pytest.importorskip("flatbuffers", reason="jax.export writes its blobs with flatbuffers, which is not installed")
from jax import export  # noqa: E402

X = np.arange(24, dtype=np.float32).reshape(3, 8) / 16
W = np.cos(np.arange(32, dtype=np.float32)).reshape(8, 4)


def function(x: Any, w: Any) -> Any:
    return jax.nn.softmax(x @ w)


def right(*arguments: Any, of: Any = function) -> Any:
    with jax.default_device(jax.devices("cpu")[0]):
        return np.asarray(of(*arguments))


def exported(of: Any, *arguments: Any, platforms: Any = ("cpu",)) -> Any:
    return export.export(jax.jit(of), platforms=platforms)(*arguments)


def lowered() -> Any:
    return jax.jit(function).lower(X, W)


def symbolic() -> Any:
    (b,) = export.symbolic_shape("b")
    return exported(function, jax.ShapeDtypeStruct((b, 8), "float32"), jax.ShapeDtypeStruct((8, 4), "float32"))


def bytecode() -> bytes:
    out = io.BytesIO()
    lowered().compiler_ir().operation.write_bytecode(file=out)
    return out.getvalue()


def proto() -> bytes:
    return lowered().compiler_ir("hlo").as_serialized_hlo_module_proto()


def hlo_proto() -> bytes:
    """An HloProto: the module is its field 1."""
    module = proto()
    size = bytes([len(module) & 127 | 128, len(module) >> 7])
    assert len(module) < 1 << 14
    return b"\n" + size + module


FORMS = {
    "export": lambda: exported(function, X, W).serialize(),
    "export for cuda": lambda: exported(function, X, W, platforms=("cuda",)).serialize(),
    "symbolic export": lambda: symbolic().serialize(),
    "compressed proto": lambda: gzip.compress(hlo_proto()),
    "artifact": lambda: symbolic().mlir_module_serialized,
    "bytecode": bytecode,
    "module": proto,
    "proto": hlo_proto,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_binary_form_gives_jaxs_numbers(form: str) -> None:
    data = bytes(FORMS[form]())
    assert kind_of(reading.decompressed(data, form)) is not None
    program = xe.compile(data)
    np.testing.assert_allclose(np.asarray(program(X, W)), right(X, W), rtol=1e-5)
    if form in ("symbolic export", "artifact"):
        assert program.symbols
        np.testing.assert_allclose(np.asarray(program(X[:2], W)), right(X[:2], W), rtol=1e-5)


def test_a_name_says_nothing(tmp_path: Path) -> None:
    """The first bytes say what a file is."""
    path = tmp_path / "gelu.hlo"
    path.write_bytes(FORMS["artifact"]())
    text, name = read_text(path)
    assert is_stablehlo(text)
    assert name == f"{path} as text"


def test_of_an_export_for_several_platforms_cuda_is_taken() -> None:
    def branches(x: Any) -> Any:
        return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, cuda=lambda x: x * 3, default=lambda x: x - 1)

    x = np.arange(4, dtype=np.float32)
    both = exported(branches, x, platforms=("cpu", "cuda"))
    blob = both.serialize()  # a bytearray
    program = xe.compile(blob)
    assert xe.check(blob).ok
    assert len(program.parameters) == 1
    np.testing.assert_array_equal(np.asarray(program(x)), x * 3)
    (b,) = export.symbolic_shape("b")
    unknown = exported(branches, jax.ShapeDtypeStruct((b,), "float32"), platforms=("cpu", "cuda"))
    np.testing.assert_array_equal(np.asarray(xe.compile(unknown.serialize())(x)), x * 3)
    neither = exported(branches, x, platforms=("cpu", "tpu")).serialize()
    with pytest.raises(ParseError, match="it is for cpu, tpu: none of them is cuda"):
        xe.compile(bytes(neither))


def test_jaxs_names_and_lines_are_kept() -> None:
    """The locations of the Python that a binary form was made of reach the kernels."""
    text = read_binary(bytes(FORMS["symbolic export"]()), "x.bin").text
    assert "jit(function)/dot_general" in text
    assert Path(__file__).name in text


def test_a_place_in_a_binary_form_is_an_instruction() -> None:
    """No file has the lines of the text; it is the instruction that can be looked for."""
    hlo = pytest.importorskip("jaxlib._hlo")
    module = 'HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT s = f32[4] custom-call(p), custom_call_target="no_such"\n}\n'
    data = hlo.hlo_module_from_text(module).as_serialized_hlo_module_proto()
    assert read_text(data)[1] == "<bytes> as text"
    with pytest.raises(XlaEmittersError) as found:
        xe.compile(data)(np.ones(4, np.float32))
    assert found.value.place is not None
    assert str(found.value.place) == "<bytes>:%s"


def test_constants_are_whole() -> None:
    values = np.arange(4096, dtype=np.float32)
    data = jax.jit(lambda x: x + values).lower(values).compiler_ir("hlo").as_serialized_hlo_module_proto()
    assert "constant({...})" not in read_binary(data, "x.pb").text


def test_written_forms_are_read_back() -> None:
    text = read_binary(proto(), "x.pb").text
    assert kind_of(written(text, "proto", "x")) is BinaryKind.MODULE
    artifact = written(symbolic().mlir_module(), "bytecode", "x")
    assert artifact.startswith(b"ML\xefR\x01StableHLO_v")  # the oldest version that has its ops
    np.testing.assert_allclose(np.asarray(xe.compile(artifact)(X, W)), right(X, W), rtol=1e-5)
    with pytest.raises(ParseError, match="x is text, to be written as proto, and XLA does not read it"):
        written("HloModule m\nENTRY {", "proto", "x")


def test_without_jaxlib_the_kind_and_the_extra_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages" not in path])
    with pytest.raises(ToolError) as found:
        read_binary(bytes(FORMS["artifact"]()), "without.mlirbc")
    assert "without.mlirbc is MLIR bytecode (StableHLO_v" in found.value.message
    assert "xla" in found.value.help


def test_a_cut_blob_is_named() -> None:
    """The reader has a process of its own: that its process ends is said, with the name of the file."""
    data = bytearray(FORMS["export"]())
    at = data.index(b"ML\xefR")
    for cut in (at + 4, at + 40):
        with pytest.raises(ParseError, match=r"x\.bin is a blob of jax\.export, and XLA"):
            read_binary(bytes(data[:cut]), "x.bin")


def flipped(data: bytes, seed: int) -> bytes:
    """The data with one to four bits flipped, cut, or with a run of bytes written over."""
    chosen, found = random.Random(seed), bytearray(data)
    for _ in range(chosen.randint(1, 4)):
        found[chosen.randrange(len(found))] ^= 1 << chosen.randrange(8)
    if chosen.random() < 0.2:
        del found[chosen.randrange(len(found)) :]
    elif chosen.random() < 0.2:
        start = chosen.randrange(len(found))
        found[start : start + 8] = bytes(chosen.randrange(256) for _ in range(8))
    return bytes(found)


def test_damaged_compressed_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = gzip.compress(hlo_proto())
    for bad, said in ((data[:-20], "it is cut"), (data[:40] + b"\xff\xff" + data[42:], "damaged"), (data[:2], "cut")):
        with pytest.raises(ParseError, match=f"x.hlo.pb.gz is compressed by gzip, and.*{said}"):
            read_binary(bad, "x.hlo.pb.gz")
    monkeypatch.setattr(reading, "MOST_BYTES", 1 << 20)
    with pytest.raises(ParseError, match="holds more than 1 MiB"):
        read_binary(gzip.compress(bytes(1 << 21)), "x.hlo.pb.gz")
    with pytest.raises(ParseError, match=r"x\.gz is an array of NumPy, not text"):
        reading.text_of(gzip.compress(b"\x93NUMPY\x01\0v\0{\xff"), "x.gz")


def _read(data: bytes) -> str | None:
    """The text of a binary form, by the reader in this process; None where it refuses."""
    faulthandler.disable()  # XLA's own stack is no news
    if (kind := kind_of(data)) in (BinaryKind.MODULE, BinaryKind.SNAPSHOT):
        found = saved_module(data)
        answer = answered("proto", "hlo", found.module)
    elif kind is None:
        return None
    else:
        answer = answered("bytecode" if kind is BinaryKind.BYTECODE else "export", "stablehlo", data)
    return answer[1:].decode() if answer.startswith(CONVERTED) else None


@pytest.mark.parametrize("form", ["symbolic export", "artifact", "module"])
def test_damaged_forms_end_in_a_message(form: str) -> None:
    """A hundred damaged files of each form: a text, whatever it says, or a refusal; and of the text a program or a message.

    Each is read in a process of its own, as by `read_binary`, which here is a fork: jaxlib is loaded once.
    """
    import jaxlib._hlo
    import jaxlib.mlir.dialects.stablehlo  # noqa: F401

    data = bytes(FORMS[form]())
    texts = 0
    for seed in range(100):
        text = isolated(partial(_read, flipped(data, seed)), 4.0)
        assert text is None or isinstance(text, str), text
        if text is None:
            continue
        texts += 1
        with suppress(XlaEmittersError):
            xe.compile(text, stage="stablehlo" if is_stablehlo(text) else "hlo")
    assert texts < 100


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("form", ["symbolic export", "artifact", "module"])
def test_damaged_forms_end_in_a_message_of_the_reader_too(form: str, seed: int) -> None:
    """The whole way, with its own process."""
    with suppress(XlaEmittersError):
        assert read_text(flipped(bytes(FORMS[form]()), 1000 + seed))[0]


def test_shardings_that_the_text_lacks_are_those_of_the_module() -> None:
    """Parameters by their numbers, and the result; a parameter whose sharding XLA has printed keeps it."""
    sharding, mesh = jax.sharding, jax.sharding.AbstractMesh((2, 4), ("x", "y"))
    by_rows, whole = (
        sharding.NamedSharding(mesh, sharding.PartitionSpec(*spec))._to_xla_hlo_sharding(2).to_proto()
        for spec in (("x",), ())
    )
    text = """HloModule m

add { ROOT a = f32[] parameter(0) }

ENTRY e {
  %q = f32[8,4]{1,0} parameter(1), metadata={op_name="q"}
  %p = f32[8,4]{1,0} parameter(0), sharding={maximal device=3}
  ROOT %s = f32[8,4]{1,0} add(%p, %q)
}
"""
    module = SimpleNamespace(spmd_parameters_shardings=[by_rows, by_rows], spmd_output_sharding=whole)
    rows = "sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}"
    wanted = text.replace("parameter(1)", f"parameter(1), {rows}").replace("%q)", "%q), sharding={replicated}")
    assert with_shardings(text, module) == wanted
    assert with_shardings(text, SimpleNamespace(spmd_parameters_shardings=None, spmd_output_sharding=None)) == text
