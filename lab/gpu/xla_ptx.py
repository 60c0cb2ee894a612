"""XLA's own kernels of fusions, without a GPU: PTX and launches, as JSON lines. usage: xla_ptx.py ROOT OUT.json.gz"""

import gzip
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from xla_emitters.device import device
from xla_emitters.explore.real_xla import XlaGpu

root, out = Path(sys.argv[1]), sys.argv[2]
x = XlaGpu(device("h100"))
found = {}
part = Path(out + ".part")
for line in part.read_text().splitlines() if part.exists() else []:
    row = json.loads(line)
    found[row[0]] = row[1]
files = sorted(p for p in root.glob("*/*.hlo"))
skip = {"modules", "hlo_text", "hlo_text_rejected"}
for path in files:
    if path.parent.name in skip:
        continue
    if f"{path.parent.name}/{path.name}" in found:
        continue
    name = f"{path.parent.name}/{path.name}"
    d = Path(tempfile.mkdtemp())
    part.open("a").write(json.dumps([name, {"error": "XLA aborts"}]) + "\n")
    try:
        x.compile(path.read_text(), d)
        ptx = max((p for p in d.glob("*.ptx")), key=lambda p: p.stat().st_size).read_text()
        thunks = next(iter(d.glob("*thunk_sequence.txt"))).read_text()
        rows = []
        for line in thunks.splitlines():
            m = re.search(r"kCustomKernel|kKernel", line)
            g = re.search(
                r"grid: \[(\d+), (\d+), (\d+)\] threads: \[(\d+), (\d+), (\d+)\]\s+shared_memory: (\d+)", line
            )
            kind = line.split(":")[1].split()[0] if ":" in line else line
            rows.append([kind, [int(v) for v in g.groups()] if g else None])
        found[name] = {"ptx": ptx, "thunks": rows}
    except Exception as e:
        found[name] = {"error": str(e)[:200]}
    shutil.rmtree(d)
    part.open("a").write(json.dumps([name, found[name]]) + "\n")
with gzip.open(out, "wt") as f:
    json.dump(found, f)
print(len(found), sum("error" in v for v in found.values()))
