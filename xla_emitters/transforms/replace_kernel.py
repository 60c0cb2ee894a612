"""Replaces a kernel by IR that somebody wrote, so that the passes after it go on from there.

    xla-replace-kernel{file=edited.mlir}        @fusion of the module becomes @fusion of the file; a module with another entry stays

The text is IR of the stage that the pass stands at, as `--stage` prints it. Its entry must take what the kernel takes, and have its
launch. A line that is as it was keeps the HLO instruction that it comes from; other lines come from their place in the text. This is how a
person tries an idea on a kernel: a wrong idea is found by `check` and `bisect` as a wrong pass is.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir_printer import print_ir_with_lines
from xla_emitters.errors import UsageError, VerifyError
from xla_emitters.rewrite.kernel_entry import entry_of_kernel, is_entry, launch_of
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.rewrite.symbols import symbol_name


@dataclass(frozen=True)
class ReplaceKernelPass(KernelPass):
    """See the head of the file.

    file  the file with the IR, and its name in messages
    text  the IR where it is in no file
    """

    file: str = ""
    text: str = ""

    name = "xla-replace-kernel"

    def apply_to(self, op: ModuleOp) -> None:
        new = parse_ir(self._read(), self.file or "<edited>", locate=True)
        if not any(map(is_entry, op.walk())):
            return
        kernel, entry = entry_of_kernel(op), entry_of_kernel(new)
        if symbol_name(entry) != symbol_name(kernel):
            return
        self._refuse_other_signature(kernel, entry)
        if launch_of(op) != launch_of(new):
            raise VerifyError(
                f"@{symbol_name(entry)} has {launch_of(new)}; the program launches {launch_of(op)}",
                stage=self.name,
                help="leave the attributes of the entry as they are",
            )
        _keep_locations(op, new)
        for old in list(op.body.block.ops):
            old.detach()
            old.erase(safe_erase=False)
        for function in list(new.body.block.ops):
            function.detach()
            op.body.block.add_op(function)

    def _read(self) -> str:
        if self.text:
            return self.text
        if not self.file:
            raise UsageError("no file with the IR is given", stage=self.name, help=f"{self.name}{{file=k.mlir}}")
        try:
            return Path(self.file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise UsageError(f"cannot read '{self.file}': {why}", stage=self.name) from error

    def _refuse_other_signature(self, kernel: Operation, entry: Operation) -> None:
        before, after = ([str(each.type) for each in op.regions[0].blocks[0].args] for op in (kernel, entry))
        if before != after:
            raise VerifyError(
                f"@{symbol_name(entry)} takes ({', '.join(after)}); the program's takes ({', '.join(before)})",
                stage=self.name,
                help="IR of another stage? --stage prints that of each",
            )


def _keep_locations(before: ModuleOp, after: ModuleOp) -> None:
    """Ops on lines that are as they were get the locations that these had."""
    (old_text, old_starts), (new_text, new_starts) = print_ir_with_lines(before), print_ir_with_lines(after)
    old_ops, new_ops = _by_line(old_starts), _by_line(new_starts)
    lines = SequenceMatcher(None, old_text.split("\n"), new_text.split("\n"), autojunk=False)
    for old_first, new_first, length in lines.get_matching_blocks():
        for line in range(length):
            for old, new in zip(old_ops.get(old_first + line, ()), new_ops.get(new_first + line, ()), strict=False):
                new.location = old.location


def _by_line(starts: list[tuple[int, Operation]]) -> dict[int, list[Operation]]:
    found = dict[int, list[Operation]]()
    for line, op in starts:
        found.setdefault(line, []).append(op)
    return found
