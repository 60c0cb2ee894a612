"""Readers and printers of texts: `hlo`, `stablehlo`, `ptx`, `llvm_ir`, and `binary` forms of them."""
