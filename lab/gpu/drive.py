"""Runs workers side by side on a list of cases, and prints a summary.

usage: drive.py OUT SECONDS WORKERS KIND[:PREFIX] ...
"""

import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

HERE = Path(os.environ["GPU_HERE"])
REHEARSAL = os.environ.get("GPU_REHEARSAL")  # kernels do nothing: no number is judged
PROJECT = Path(os.environ["GPU_PROJECT"])
sys.path[:0] = [str(PROJECT), str(PROJECT / "tests")]


def cases(kind: str) -> list[str]:
    corpus = PROJECT / "tests" / "corpus"
    if kind == "fusion":
        known = json.loads((corpus / "xla.json").read_text())["files"]
        return [f"corpus/{name}" for name in known]
    if kind == "extra":
        return [f"extra/{p.parent.name}/{p.name}" for p in sorted((HERE / "extra").glob("*/*.hlo"))]
    if kind == "sweep":
        return [f"sweep/{p.parent.name}/{p.name}" for p in sorted((HERE / "sweep").glob("*/*.hlo"))]
    if kind == "peer":
        text = (Path(__file__).parent / "peers.py").read_text()
        return re.findall(r'^        "(\w+)": \(', text, re.M)
    if kind == "function":
        text = Path(os.environ.get("GPU_CASES") or Path(__file__).parent / "cases.py").read_text()
        return re.findall(r'^    "(\w+)": \(', text, re.M)
    if kind == "module":
        names = json.loads((corpus / "modules" / "modules.json").read_text())
        return [name + setting for name in names for setting in ("", ".triton")]
    if kind == "program":
        from runtime.programs_table import programs

        return list(programs())
    from runtime.models import NAMES

    return list(NAMES)


def main() -> None:
    out, seconds, workers, kinds = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    out.mkdir(parents=True, exist_ok=True)
    listed = []
    for word in kinds:
        kind, _, prefix = word.partition(":")
        every, _, kind = kind.rpartition("*")
        names = [n for n in cases(kind) if not prefix or n.startswith(prefix)][:: int(every or 1)]
        listed += [{"kind": "fusion" if kind == "extra" else kind, "name": name} for name in names]
    random.Random(1).shuffle(listed)
    listed.sort(key=lambda c: c["kind"] not in ("model", "big_model", "program"))  # the long ones first
    cases_file = Path(f"/tmp/cases{os.getpid()}.json")
    cases_file.write_text(json.dumps(listed))
    counter = Path(f"/tmp/counter{os.getpid()}")
    counter.write_text("0")
    rows_file = out / "rows.jsonl"
    rows_file.write_text("")
    deadline = time.time() + seconds
    environment = {
        **os.environ,
        "GPU_DEADLINE": str(deadline),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
    }
    start = time.time()
    logs = [open(f"/tmp/worker{n}.log", "w") for n in range(workers)]
    running = [
        subprocess.Popen(
            [
                *os.environ.get("GPU_PREFIX", "").split(),
                sys.executable,
                str(Path(__file__).parent / "work.py"),
                str(cases_file),
                str(rows_file),
                str(counter),
                str(n),
            ],
            env=environment,
            stdout=logs[n],
            stderr=logs[n],
        )
        for n in range(workers)
    ]
    for process in running:
        try:
            process.wait(max(1.0, deadline + 10 - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
    lines = [json.loads(line) for line in rows_file.read_text().splitlines()]
    rows = [r for r in lines if "name" in r]
    done = {r["name"] for r in rows}
    begun = [r["begins"] for r in lines if "begins" in r and r["begins"] not in done]
    print(f"{len(rows)} of {len(listed)} cases in {time.time() - start:.0f} s; begun and not ended: {begun}")
    for kind in sorted({c["kind"] for c in listed}):
        of = [r for r in rows if r["kind"] == kind]
        right, wrong = (sum(r.get("ok") is verdict for r in of) for verdict in (True, False))
        judged = "" if REHEARSAL else f"{right} right, {wrong} wrong, "
        print(f"{kind}: {len(of)} run, {judged}{sum('error' in r for r in of)} errors")
    for text, count in Counter(r["error"].replace(r["name"], "NAME")[:160] for r in rows if "error" in r).most_common(
        12
    ):
        print(f"  {count} x {text}")
    for r in [r for r in rows if r.get("ok") is False and not REHEARSAL][:15]:
        print("  WRONG", r["name"], r["says"][:160])
    pairs = [r for r in rows if "xla_cold_us" in r]
    if pairs:
        import math

        for how in ("warm", "cold"):
            logs_ = [math.log(max(r[f"ours_{how}_us"] - 0, 0.1) / max(r[f"xla_{how}_us"] - 0, 0.1)) for r in pairs]
            print(f"kernels {how}: {len(pairs)} pairs, geometric mean ours/XLA {math.exp(sum(logs_) / len(logs_)):.3f}")
        same = {key: sum(bool(r.get(key)) for r in pairs) for key in ("same_bits", "same_launch")}
        judged = sum("same_bits" in r for r in pairs)
        print(f"same bits: {same['same_bits']} of {judged}; same launch {same['same_launch']}")
    for n in range(workers):
        text = Path(f"/tmp/worker{n}.log").read_text()
        if text.strip():
            print(f"worker {n}:", text.strip()[-300:])
            break
    if programs := [r for r in rows if r["kind"] == "program"]:
        on_host = sum(bool(r.get("log")) for r in programs)
        errors = sum("error" in r for r in programs)
        print(f"{len(programs)} programs, {on_host} with work on the host, {errors} errors")
        if REHEARSAL and (on_host or errors):
            sys.exit(1)


main()
