"""`maps`: indexing maps of a fusion, as text and as JSON; errors for wrong arguments."""

import json
from pathlib import Path

import pytest
from in_process import messages, printed, written

from xla_emitters.tools.main import main

ROW_SUM = """HloModule sums
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
f {
  p = f32[20,40]{1,0} parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[20]{0} reduce(p, z), dimensions={1}, to_apply=add
}
ENTRY e {
  p = f32[20,40]{1,0} parameter(0)
  ROOT fusion = f32[20]{0} fusion(p), kind=kInput, calls=f
}
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = written(tmp_path / "sums.hlo", ROW_SUM)
    return str(file)


def test_text(path: str) -> None:
    assert printed("maps", path).splitlines() == [
        "fusion fusion",
        "%r f32[20]",
        "  %p f32[20,40]",
        "    (d0)[s0] -> (d0, s0), domain: d0 in [0, 19], s0 in [0, 39]",
    ]


def test_the_other_way_round_as_json(path: str) -> None:
    assert json.loads(printed("maps", path, "--to-output", "--json")) == {
        "fusions": {
            "fusion": [
                {
                    "from": "p",
                    "to": "r",
                    "maps": [
                        {
                            "map": "(d0, d1) -> (d0), domain: d0 in [0, 19], d1 in [0, 39]",
                            "runtime_variables": [],
                        }
                    ],
                }
            ]
        }
    }


def test_no_device(path: str) -> None:
    """Maps are the same for all."""
    assert "unrecognized arguments: --target" in messages(2, "maps", path, "--target", "h200")


def test_no_such_instruction(path: str) -> None:
    assert "fusion %fusion has no instruction 'q'" in messages(2, "maps", path, "--instruction", "q")


def test_a_module_without_fusions_is_said_to_have_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "product.hlo"
    dot = "dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    file.write_text(f"ENTRY e {{ p = f32[4,5] parameter(0) q = f32[5,3] parameter(1) ROOT d = f32[4,3] {dot} }}")
    assert main(["maps", str(file)]) == 0
    assert capsys.readouterr() == ("", "note: product has no fusion: `xla-emitters list` shows what it calls\n")
