"""The LLVM dialect written as LLVM IR text: `printer` (modules), `instructions` (a row for each op), `function_attributes`, `spelling`."""
