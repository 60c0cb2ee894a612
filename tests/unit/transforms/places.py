"""Whether a pass gives a location to every op that it makes."""

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.traits import IsTerminator

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.rewrite.kernel_pass import KernelPass


def after_with_places(text: str, step: KernelPass) -> tuple[ModuleOp, dict[str, FileLineColLoc]]:
    """The module after the pass, where every op but terminators has a location; and the location of all ops of a name before it."""
    module = parse_ir(text)
    places = {op.name: FileLineColLoc(StringAttr(op.name), IntAttr(1), IntAttr(1)) for op in module.walk()}
    for op in module.walk():
        op.location = places[op.name]
    step.apply(make_context(), module)
    made = [op for op in module.walk() if not op.has_trait(IsTerminator)]
    assert not [op.name for op in made if isinstance(op.location, UnknownLoc)]
    return module, places
