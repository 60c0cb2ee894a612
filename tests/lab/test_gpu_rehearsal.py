"""The kit for a machine with a GPU runs to its end on the stand-in whose kernels do nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_program_is_rehearsed(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "GPU_REHEARSAL": "1",
        "GPU_SMALL": "1",
        "GPU_NO_TIMES": "1",
        "GPU_HERE": str(tmp_path),
        "GPU_PROJECT": str(ROOT),
        "PYTHONPATH": f"{ROOT / 'lab/gpu/rehearsal'}:{ROOT}",
    }
    command = [sys.executable, str(ROOT / "lab/gpu/drive.py"), str(tmp_path), "300", "1"]
    done = subprocess.run([*command, "program:rope"], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "1 programs, 0 with work on the host, 0 errors", done.stdout + done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    launches = {row["name"]: row["launches"] for row in rows if "launches" in row}
    assert launches["rope"] == 6  # one kernel, at six sizes
