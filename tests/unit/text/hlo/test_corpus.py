"""All of HLO text against the real XLA's verdicts: texts that it reads and texts that it refuses, checked in as files.

tests/corpus/hlo_text            read by XLA, and by us; what we print reads back as the same module, also through MLIR's forms of it
tests/corpus/hlo_text_rejected   refused by XLA, and by us with a message that has a place, exit code 1
"""

import contextlib
import io
from pathlib import Path

import pytest
from long_lists import every

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.hlo import HLO_OPS, HloOp
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ParseError, VerifyError
from xla_emitters.text.hlo import parse_hlo, print_hlo
from xla_emitters.tools.main import main

CORPUS = Path(__file__).parents[3] / "corpus"
READ = sorted((CORPUS / "hlo_text").glob("*.hlo"))
REFUSED = sorted((CORPUS / "hlo_text_rejected").glob("*.hlo"))
# A folder per kind of kernel that XLA makes of the fusions in it.
KINDS = ("concatenate", "dynamic_update_slice", "loop", "memcpy", "reduction", "scatter", "transpose")
FUSIONS = [path for kind in KINDS for path in sorted((CORPUS / kind).glob("*.hlo"))]


def test_the_files_are_there():
    assert len(READ) == 95
    assert len(REFUSED) == 181
    assert len(FUSIONS) == 410


@pytest.mark.parametrize("path", [*READ, *every(8, FUSIONS)], ids=lambda path: path.stem)
def test_what_xla_reads_is_read_and_printed(path: Path):
    module = parse_hlo(path.read_text(), path.name)
    module.verify()
    text = print_hlo(module)
    again = parse_hlo(text)
    assert module.is_structurally_equivalent(again)
    assert print_hlo(again) == text
    for generic in (False, True):
        assert module.is_structurally_equivalent(parse_ir(print_ir(module, generic=generic)))


def test_every_opcode_is_read():
    found = {
        op.opcode for path in READ for op in parse_hlo(path.read_text(), path.name).walk() if isinstance(op, HloOp)
    }
    assert found == set(HLO_OPS)
    assert len(HLO_OPS) == 133


def test_what_xla_refuses_is_refused_with_a_place():
    for path in REFUSED:
        with pytest.raises((ParseError, VerifyError)) as error:
            parse_hlo(path.read_text(), path.name)
        place = error.value.place
        assert place is not None, path.name
        assert place.file == path.name
        assert 1 <= place.line <= len(path.read_text().splitlines()) + 1


@pytest.mark.parametrize("path", REFUSED[::10], ids=lambda path: path.stem)
def test_the_command_says_so(path: Path):
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        code = main(["compile", str(path), "--stage", "hlo"])
    assert code == 1
    assert err.getvalue().startswith(f"{path}:")


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_what_is_not_compiled_is_refused_by_name(path: Path):
    """Compiled, or refused with a message: never a fault of ours."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        code = main(["compile", str(path), "--stage", "xla_gpu"])
    assert code in (0, 1), err.getvalue()
    assert code == 0 or "error: [" in err.getvalue()
