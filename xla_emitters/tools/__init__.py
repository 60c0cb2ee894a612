"""The command line: `xla-emitters` with its verbs and `xla-emitters-opt`."""
