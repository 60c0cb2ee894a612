"""MLIR's own dialects as this project reads and prints them: xDSL's op classes where they are right, ours where they are not."""
