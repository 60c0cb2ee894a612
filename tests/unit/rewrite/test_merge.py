"""Several modules as one: every symbol is defined once, references follow renamed symbols, and nothing is shared by mistake."""

from xdsl.dialects.builtin import ModuleOp

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import func
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.rewrite.index_width import index_width
from xla_emitters.rewrite.merge import merge_modules
from xla_emitters.rewrite.symbols import functions, symbol_name

LAYOUT = "attributes {dlti.dl_spec = #dlti.dl_spec<index = 32 : i32>} "


def kernel(entry: str, op: str, attributes: str = "") -> str:
    """An entry that calls a private function and one of libdevice's."""
    return f"""module {attributes}{{
  func.func @{entry}(%x: f32) -> f32 {{
    %0 = func.call @helper(%x) : (f32) -> f32
    %1 = func.call @__nv_sinf(%0) : (f32) -> f32
    return %1 : f32
  }}
  func.func private @helper(%x: f32) -> f32 {{
    %0 = arith.{op} %x, %x : f32
    return %0 : f32
  }}
  func.func private @__nv_sinf(f32) -> f32
}}"""


def merged(*texts: str) -> tuple[ModuleOp, list[dict[str, str]]]:
    module, renamed = merge_modules([parse_ir(text) for text in texts])
    module.verify()
    assert print_ir(parse_ir(print_ir(module))) == print_ir(module)
    return module, [dict(names) for names in renamed]


def names(module: ModuleOp) -> list[str | None]:
    return [symbol_name(op) for op in module.body.ops]


def called(module: ModuleOp, name: str) -> list[str]:
    """What a function calls."""
    return [op.callee.root_reference.data for op in functions(module)[name].walk() if isinstance(op, func.CallOp)]


def test_one_module_is_the_answer_itself() -> None:
    module = parse_ir(kernel("a", "addf"))
    assert merge_modules([module]) == (module, ({},))


def test_each_entry_calls_its_own_functions_and_one_declaration() -> None:
    module, renamed = merged(kernel("a", "addf"), kernel("b", "mulf"), kernel("c", "subf"))
    assert names(module) == ["a", "helper", "__nv_sinf", "b", "helper_1", "c", "helper_2"]
    assert renamed == [{}, {"helper": "helper_1"}, {"helper": "helper_2"}]
    for entry, helper, op in (("a", "helper", "addf"), ("b", "helper_1", "mulf"), ("c", "helper_2", "subf")):
        assert called(module, entry) == [helper, "__nv_sinf"]
        assert [inner.name for inner in functions(module)[helper].walk()][1] == f"arith.{op}"


def test_entries_of_one_name_and_a_name_that_is_taken() -> None:
    """`a` of the second module may not become `a_1`, which the second has, nor `helper_1`, which the first has."""
    first = kernel("a", "addf").replace("__nv_sinf", "helper_1")
    second = kernel("a", "mulf").replace("__nv_sinf", "a_1")
    module, renamed = merged(first, second)
    assert names(module) == ["a", "helper", "helper_1", "a_2", "helper_2", "a_1"]
    assert renamed == [{}, {"a": "a_2", "helper": "helper_2"}]
    assert called(module, "a_2") == ["helper_2", "a_1"]


def test_each_kernel_keeps_its_shared_memory() -> None:
    """Globals without an initial value are no declarations: two of one name may have two sizes."""
    texts = [
        f"""module {{
  llvm.mlir.global private @shared_0() {{addr_space = 3 : i32}} : !llvm.array<{size} x f32>
  llvm.func @{entry}() -> !llvm.ptr<3> {{
    %0 = llvm.mlir.addressof @shared_0 : !llvm.ptr<3>
    llvm.return %0 : !llvm.ptr<3>
  }}
}}"""
        for entry, size in (("a", 32), ("b", 64))
    ]
    module, renamed = merged(*texts)
    assert names(module) == ["shared_0", "a", "shared_0_1", "b"]
    assert renamed[1] == {"shared_0": "shared_0_1"}
    text = print_ir(module)
    assert "@shared_0_1() {addr_space = 3 : i32} : !llvm.array<64 x f32>" in text
    assert text.index("llvm.func @b") < text.index("addressof @shared_0_1")


def test_an_index_is_as_wide_as_the_widest() -> None:
    narrow, wide = kernel("a", "addf", LAYOUT), kernel("b", "mulf")
    assert [index_width(merged(*texts)[0]) for texts in ((narrow, narrow), (narrow, wide), (wide, narrow))] == [
        *(32, 64, 64)
    ]
