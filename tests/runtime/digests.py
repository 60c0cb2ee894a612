"""Checks that the PTX of the corpus is unchanged: `tests/corpus/ptx.sha256` has one digest per file. A change that only
moves code keeps all of them.

    make digests                    compares; prints the files whose PTX is another, and ends with 1 if there are any
    make digests DIGESTS=--write    records the digests of this tree

The file names the LLVM that made the PTX: another version prints other text for the same module, so nothing is compared then.
"""

import argparse
import hashlib
import multiprocessing
import sys
from pathlib import Path

from tools_here import here

from xla_emitters.lowering.toolchain.tools import find_tool
from xla_emitters.pipelines.compiler import compile

CORPUS = Path(__file__).parents[1] / "corpus"
RECORDED = CORPUS / "ptx.sha256"
KINDS = ("concatenate", "dynamic_update_slice", "loop", "memcpy", "reduction", "scatter", "transpose")


def digest(name: str) -> tuple[str, str]:
    """A corpus file, and the SHA-256 of its PTX for the default device."""
    program = compile(CORPUS / name, cache=False, record="none")
    return name, hashlib.sha256(program.code.encode()).hexdigest()


def recorded() -> tuple[str, dict[str, str]]:
    """The tools that made the recorded digests, and the digests by file."""
    first, *lines = RECORDED.read_text().splitlines()
    return first.removeprefix("# "), {name: found for found, _, name in (line.partition("  ") for line in lines)}


def tools() -> str:
    """What makes PTX besides this tree: the version of LLVM, and the digest of libdevice's bitcode."""
    libdevice = hashlib.sha256(Path(find_tool("libdevice", here()).path).read_bytes()).hexdigest()
    return f"mlir-opt {find_tool('mlir-opt', here()).version}, libdevice {libdevice[:16]}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="digests", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record the digests of this tree")
    options = parser.parse_args()
    names = [str(path.relative_to(CORPUS)) for kind in KINDS for path in sorted((CORPUS / kind).glob("*.hlo"))]
    with multiprocessing.get_context("spawn").Pool() as pool:
        found = dict(pool.imap(digest, names, chunksize=8))
    if options.write:
        lines = [f"# {tools()}", *(f"{digest}  {name}" for name, digest in found.items())]
        RECORDED.write_text("\n".join((*lines, "")))
        print(f"{len(found)} digests written to {RECORDED.name}")
        return 0
    made_by, before = recorded()
    if made_by != tools():
        print(f"the recorded digests are of other tools ({made_by}); these are {tools()}: nothing compared")
        return 1
    different = [name for name in sorted(before.keys() | found.keys()) if before.get(name) != found.get(name)]
    print(*different, f"{len(found) - len(different)} of {len(before)} have the recorded PTX", sep="\n")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
