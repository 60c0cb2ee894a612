"""xDSL's own dialects, without ours."""

from xdsl.context import Context
from xdsl.dialects import get_all_dialects

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.errors import ParseError, VerifyError


def stock_context() -> Context:
    """A context with xDSL's dialects as they are."""
    context = Context()
    for name, factory in get_all_dialects().items():
        context.register_dialect(name, factory)
    return context


def is_valid_for_xdsl(text: str) -> bool:
    """Whether xDSL's own ops read the text and find nothing wrong."""
    try:
        parse_ir(text, context=stock_context())
    except (ParseError, VerifyError):
        return False
    return True


def printed_by_xdsl(text: str) -> str | None:
    """The text as xDSL's own ops print it; None if they refuse it."""
    try:
        return print_ir(parse_ir(text, context=stock_context()))
    except (ParseError, VerifyError):
        return None
