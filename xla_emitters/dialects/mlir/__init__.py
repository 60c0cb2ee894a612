"""MLIR's own dialects as this project reads and prints them: xDSL's op classes where they are correct, ours where they are not."""
