"""The base of all our passes: an xDSL `ModulePass` that can say what it declined or refuses, and why.

    @dataclass(frozen=True)
    class UnswitchLoopsPass(KernelPass):
        name = "xla-unswitch-loops"

        def apply_to(self, op: ModuleOp) -> None:
            ...
            if not is_last(branch):
                return self.skip(loop, "the branch is not alone in the body")

    xla-unswitch-loops: skipped scf.for: the branch is not alone in the body at tanh_0 (gelu.hlo:19:3)

Remarks are recorded in `notes.py` while notes are taken, and dropped otherwise. `run_pass` runs a pass, ours or xDSL's, so that any
failure in it names the pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, Self

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.exceptions import DiagnosticException

from xla_emitters.device import DEFAULT_DEVICE, Device, device
from xla_emitters.dialects.completion import adopt_all
from xla_emitters.dialects.locations import place_of
from xla_emitters.dialects.verification import place_from_location, verify_ir
from xla_emitters.errors import InternalError, Place, Unsupported, UsageError, VerifyError, XlaEmittersError
from xla_emitters.plugins import blamed, fault, is_outside
from xla_emitters.rewrite.notes import notes_wanted
from xla_emitters.support.late_dataclass import dataclass
from xla_emitters.trace import Remark


class KernelPass(ModulePass):
    """A pass on modules. Subclasses set `name` and implement `apply_to(op)`, or `apply` if they need xDSL's context; options are
    dataclass fields."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "apply_to" in cls.__dict__ and "apply" not in cls.__dict__:
            cls.apply = _apply_to

    def skip(self, op: Operation, reason: str) -> None:
        """Records that this pass left `op` as it is, and why. `reason` continues "skipped <op name>: "."""
        self.remark(op, f"skipped {op.name}: {reason}")

    def remark(self, op: Operation, text: str) -> None:
        """Records what this pass did with `op`, for the user."""
        if (notes := notes_wanted()) is not None:
            notes.add(Remark(self.name, text, place_of(op)))

    def warn(self, op: Operation, text: str, help: str) -> None:
        """Records a warning on `op` or on the whole input, which the tools always print; `help` is the way out."""
        if (notes := notes_wanted()) is not None:
            notes.add(Remark(self.name, text, place_of(op), help))

    def refuse(self, op: Operation, why: str, help: str = "") -> Unsupported:
        """The error to raise for an `op` that this pass does not compile; see `refusal`."""
        return refusal(self.name, op, why, help)


def _apply_to(self: Any, ctx: Context, op: ModuleOp) -> None:
    self.apply_to(op)


def refusal(
    stage: str, op: Operation, why: str, help: str = "", notes: tuple[tuple[Place | None, str], ...] = ()
) -> Unsupported:
    """The error to raise for an `op` that is not compiled. Its place is the op's own, or that of the nearest enclosing op that has one.

    stage    the name of the pass
    why      the message, which names the op
    notes    (place, text) of related places
    """
    holder: Operation | None = op
    while holder is not None and place_from_location(holder) is None:
        holder = holder.parent_op()
    place = place_from_location(holder) if holder is not None else None
    origin = place_of(op)
    details = (f"at {origin}",) if origin not in ("", str(place)) else ()
    return Unsupported(why, stage=stage, place=place, details=details, notes=notes, help=help)


Skip = Callable[[Operation, str], None]
"""`KernelPass.skip` of a pass, for functions that it calls."""


def skip_silently(op: Operation, reason: str) -> None:
    """The default of `skip` without a pass."""


_DEFAULT = device(DEFAULT_DEVICE)


@dataclass(frozen=True)
class DevicePass(KernelPass):
    """A pass that reads the target GPU; on the command line `{device="a6000"}`, a name as `--target` takes."""

    device: Device = _DEFAULT

    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        given = dict(spec.normalize_parameter_names().parameters)
        names = given.pop("device", ())
        made = super().from_spec(ArgSpec(spec.name, given))
        match names:
            case ():
                return made
            case (str() as name,):
                return replace(made, device=device(name))
            case _:
                raise UsageError(f"{cls.name}: a device is one name", help='device="h200"')

    def spec(self, *, include_default: bool = False) -> ArgSpec:
        made = super().spec(include_default=include_default)
        if "device" in made.parameters:
            made.parameters["device"] = (self.device.name,)
        return made


def run_pass(module_pass: ModulePass, context: Context, module: ModuleOp, *, verify: bool = False) -> None:
    """Applies a pass to `module`, in place.

    verify   check the resulting IR; always done after a pass from outside the package
    raises   the errors that the pass raises on purpose: ours, and xDSL's diagnostics from xDSL's passes; InternalError naming the pass for
             anything else, and for IR that does not verify; PluginError for a pass from outside
    """
    if is_outside(type(module_pass)):
        _run_from_outside(module_pass, context, module)
        return
    try:
        module_pass.apply(context, module)
    except (XlaEmittersError, RecursionError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, DiagnosticException) and not _is_ours(type(module_pass)):
            raise
        name = module_pass.name
        raise InternalError(f"{name}: {type(error).__name__}: {error}", stage=name) from error
    if not _is_ours(type(module_pass)):
        adopt_all(module)
    if verify:
        verify_after(module_pass.name, module)


@cache
def _is_ours(pass_type: type[ModulePass]) -> bool:
    return issubclass(pass_type, KernelPass)


def _run_from_outside(module_pass: ModulePass, context: Context, module: ModuleOp) -> None:
    owner, what = type(module_pass), f"pass '{module_pass.name}'"
    with blamed(owner, what):
        module_pass.apply(context, module)
    adopt_all(module)
    try:
        verify_ir(module)
    except VerifyError as error:
        raise fault(owner, what, f"the IR that it leaves does not verify: {error.message}") from error


def verify_after(name: str, module: ModuleOp) -> None:
    """Checks the IR. raises InternalError that names the pass `name`."""
    try:
        verify_ir(module)
    except VerifyError as error:
        raise InternalError(
            f"the IR after {name} does not verify: {error.message}",
            stage=name,
            place=error.place,
            details=error.details,
        ) from error
