"""The parser of both commands: a wrong command line is a message like all others."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from typing import NoReturn

from xla_emitters.errors import UsageError
from xla_emitters.tools.terminal import marked_error


class Parser(argparse.ArgumentParser):
    """A parser whose errors are our messages: what is wrong and where help is, not the whole usage."""

    def error(self, message: str) -> NoReturn:
        unknown = re.fullmatch(r"unrecognized arguments: (-\S+).*", message)
        near = difflib.get_close_matches(unknown[1], self._option_string_actions, n=1, cutoff=0.75) if unknown else []
        help = f"{near[0]}? " if near else ""
        error = UsageError(message, stage="usage", help=f"{help}see {self.prog} --help")
        print(marked_error(error.render(), sys.stderr), file=sys.stderr)
        self.exit(UsageError.exit_code)
