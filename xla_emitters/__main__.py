"""`python -m xla_emitters VERB ...`: the command line."""

from __future__ import annotations

import sys

from xla_emitters.tools.main import command

if __name__ == "__main__":
    sys.exit(command())
