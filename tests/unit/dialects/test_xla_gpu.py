"""The `xla_gpu` ops: their text, their rules, what they fold to, what they do."""

import re

import pytest
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, bf16, f32
from xdsl.ir import Block, Operation
from xdsl.traits import get_effects, is_side_effect_free, is_speculatable

from xla_emitters.algebra.map import IndexingMap
from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import arith
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.dialects.xla_gpu import XLA_GPU, ApplyIndexingOp, AtomicRMWOp, LoopOp, PureCallOp, YieldOp
from xla_emitters.errors import ParseError, VerifyError

# The seed document's listing "MLIR Conversion", word for word.
SEED_LOOP = """
#map = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> ("
 "bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index),"
 "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">

func.func @main(%input: tensor<6x512x4096xbf16> , %output: tensor<6x512x4096xbf16>)
   -> tensor<6x512x4096xbf16> {
 %thread_id_x = gpu.thread_id  x {xla.range = [0 : index, 127 : index]}
 %block_id_x = gpu.block_id  x {xla.range = [0 : index, 24575 : index]}

 %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2)
     in #map iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>) {
   %pure_call = xla_gpu.pure_call @gelu(%input, %dim0, %dim1, %dim2)
      : (tensor<6x512x4096xbf16>, index, index, index) -> bf16
   %inserted = tensor.insert %pure_call into %iter[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
   xla_gpu.yield %inserted : tensor<6x512x4096xbf16>
 }
 return %xla_loop : tensor<6x512x4096xbf16>
}

func.func private @gelu(%arg0: tensor<6x512x4096xbf16>, %i: index, %j: index, %k: index) -> bf16 {
  %cst = arith.constant 5.000000e-01 : bf16
  return %cst : bf16
}
"""

FORMS = (
    "%r:2 = xla_gpu.apply_indexing #two(%a, %b)[%c]",
    "%r = xla_gpu.apply_indexing #symbol[%c] {xla.range = [0 : index, 3 : index]}",
    "%r = xla_gpu.apply_indexing #none",
    "%r = xla_gpu.loop (%a, %b)[%i] -> (%x, %y) in #two iter_args(%it = %t) -> (tensor<8xf32>) {\n"
    "xla_gpu.yield %it : tensor<8xf32>\n} {xla.range = [0 : index, 42 : index]}",
    "%r:2 = xla_gpu.loop ()[%i] -> (%x) in #symbol iter_args(%it = %t, %n = %v) -> (tensor<8xf32>, f32) {\n"
    "xla_gpu.yield %it, %n : tensor<8xf32>, f32\n}",
    "xla_gpu.loop ()[%i] -> (%x) in #symbol {\nxla_gpu.yield\n}",
    "%r = xla_gpu.pure_call @g(%t, %a) : (tensor<8xf32>, index) -> f32",
    "%r = xla_gpu.pure_call @g(%t, %a) {noinline} : (tensor<8xf32>, index) -> f32",
    "%r = xla_gpu.atomic_rmw %t[%a] : tensor<8xf32> {\n^bb0(%it: f32):\nxla_gpu.yield %it : f32\n}",
    "%r = xla_gpu.atomic_rmw %t[%a] : tensor<8xf32> {\n^bb0(%it: vector<2xf32>):\nxla_gpu.yield %it : vector<2xf32>\n}",
    "%r = xla_gpu.predicated_insert %v into %t[%a] if %p : tensor<8xf32>",
    "%r = xla_gpu.predicated_extract %t[%a] if %p else %v : tensor<8xf32>",
    "%r = xla_gpu.get_dynamic_dim_size %t 0 : tensor<8xf32>",
    "%r = xla_gpu.allocate_shared : tensor<32x1x33xf32>",
    "%r = xla_gpu.sync_threads %t : tensor<8xf32>",
    "%r:2 = xla_gpu.sync_threads %t, %q : tensor<8xf32>, tensor<4x8xi32>",
    "%r = xla_gpu.shuffle_reduce(%v) to 16 combiner=@add : f32",
    "%r:2 = xla_gpu.shuffle_reduce(%v, %w) to 4 combiner=@argmax {xla.range = [0 : index, 3 : index]} : f32, i32",
    "%r = xla_gpu.reduce(%t) inits(%v) dimensions=[0] combiner=@add : tensor<8xf32> to tensor<f32>",
    "%r:2 = xla_gpu.reduce(%z, %q) inits(%v, %w) dimensions=[1] combiner=@argmax {xla.range = [0 : index, 3 : index]}"
    " : tensor<4x8xf32>, tensor<4x8xi32> to tensor<4xf32>, tensor<4xi32>",
    '"xla_gpu.pdl_wait"() : () -> ()',
    '"xla_gpu.pdl_launch_dependents"() : () -> ()',
    "%r = xla_gpu.materialize @g(%t) at #lanes(%a) : (tensor<8xf32>) -> !xla_gpu.indexed_vector<8xf32, #lanes>",
    "%r = xla_gpu.insert %m(%a) into %t at #point : !xla_gpu.indexed_vector<8xf32, #lanes> -> tensor<8xf32>",
    "%r = xla_gpu.allocate_shared {space = #xla_gpu.memory_space<shmem>} : tensor<8xf32>",
    '%r = xla_gpu.sync_threads %s : tensor<8xf32, #xla_gpu.layout<"shmem", "(d0) -> (d0), domain: d0 in [0, 7]">>',
)
AROUND = """
#two = #xla_gpu.indexing_map<"(d0, d1)[s0] -> (d0 + s0, d1), domain: d0 in [0, 3], d1 in [0, 3], s0 in [0, 1]">
#symbol = #xla_gpu.indexing_map<"()[s0] -> (s0 * 2), domain: s0 in [0, 1]">
#none = #xla_gpu.indexing_map<"() -> (7)">
#lanes = #xla_gpu.indexing_map<"(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 3], s0 in [0, 1]">
#point = #xla_gpu.indexing_map<"(d0) -> (d0), domain: d0 in [0, 7]">
func.func private @g(tensor<8xf32>, index) -> f32
func.func private @add(f32, f32) -> f32
func.func private @argmax(f32, i32, f32, i32) -> (f32, i32)
func.func @f(%a: index, %b: index, %c: index, %t: tensor<8xf32>, %v: f32, %w: i32, %p: i1, %q: tensor<4x8xi32>,
    %z: tensor<4x8xf32>, %d: tensor<?xf32>, %m: !xla_gpu.indexed_vector<8xf32, #lanes>,
    %s: tensor<8xf32, #xla_gpu.layout<"shmem", "(d0) -> (d0), domain: d0 in [0, 7]">>) {
LINE
return
}
"""
LINE = AROUND.splitlines().index("LINE") + 1


def in_function(line: str) -> str:
    return AROUND.replace("LINE", line)


def op_of(line: str) -> Operation:
    module = parse_ir(in_function(line))
    found = [op for op in module.walk() if op.name.startswith("xla_gpu.") and not isinstance(op, YieldOp)]
    return found[0]


@pytest.mark.tiny
def test_the_seeds_loop_is_read_and_printed():
    printed = print_ir(parse_ir(SEED_LOOP))
    assert print_ir(parse_ir(printed)) == printed
    assert printed.splitlines()[0] == (
        '#map = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> (bl_x floordiv 4096, (bl_x floordiv 8) mod 512, '
        "(bl_x mod 8) * 512 + th_x * 4 + vector_index), "
        'domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">'
    )
    wanted = " ".join(SEED_LOOP.split("%xla_loop")[1].split("}")[0].split())
    assert wanted in " ".join(printed.split())


@pytest.mark.parametrize("line", FORMS)
def test_every_form_is_printed_as_it_is_read(line: str):
    module = parse_ir(in_function(line))
    printed = print_ir(module)
    for form in (
        printed,
        print_ir(module, generic=True),
        print_ir(module, spelling="upstream"),
        print_ir(module, locations=True),
    ):
        assert print_ir(parse_ir(form)) == printed
    (body,) = re.findall(r"func.func @f\(.*?\) {\n(.*)\n    return", printed, re.DOTALL)
    assert without_names_of_maps(body) == without_names_of_maps(line)


def without_names_of_maps(text: str) -> str:
    return re.sub(r"#(map|two|symbol|none|lanes|point)\d*\b", "#map", " ".join(text.split()))


def test_every_op_has_a_form():
    named = {op.name for line in FORMS for op in parse_ir(in_function(line)).walk()}
    assert {op.name for op in XLA_GPU.operations} <= named


def test_a_loop_is_built_with_its_block():
    map = IndexingMap.parse(
        "(th_x, bl_x)[vector_index] -> (bl_x, th_x * 4 + vector_index), "
        "domain: th_x in [0, 127], bl_x in [0, 5], vector_index in [0, 3]"
    )
    outside = Block(arg_types=[IndexType(), IndexType(), TensorType(f32, [8])])
    loop = LoopOp(outside.args[:2], outside.args[2:], map)
    loop.body.block.add_op(YieldOp(*loop.iter_args))
    assert [argument.name_hint for argument in loop.body.block.args] == ["vector_index", "dim0", "dim1", "iter"]
    assert (len(loop.induction_vars), len(loop.map_results), len(loop.iter_args)) == (1, 2, 1)
    assert loop.map is map
    loop.verify()
    assert (
        print_ir(loop)
        .splitlines()[1]
        .startswith(
            "%xla_loop = xla_gpu.loop (%arg0, %arg1)[%vector_index] -> (%dim0, %dim1) in #map iter_args(%iter = %arg2)"
        )
    )


def test_a_call_is_built_from_a_name():
    call = PureCallOp("gelu_multiply_0", [], [bf16])
    assert call.callee == "gelu_multiply_0"
    assert print_ir(call) == "%pure_call = xla_gpu.pure_call @gelu_multiply_0() : () -> bf16"


# ---- rules ------------------------------------------------------------------------------------------------------------

BROKEN_TEXT = {
    "%r = xla_gpu.apply_indexing #two(%a)[%c]": "the map has 2 dims and 1 symbols, but there are 1 and 1 operands",
    "%r = xla_gpu.apply_indexing #two(%a, %b, %c)": "the map has 2 dims and 1 symbols, but there are 3 and 0 operands",
    "%r = xla_gpu.apply_indexing 7(%a)": "expected an indexing map",
    "%r = xla_gpu.loop (%a)[%i] -> (%x, %y) in #two {}": "but the loop 1, 1 and 2",
    "%r = xla_gpu.loop (%a, %b)[%i, %j] -> (%x, %y) in #two {}": "but the loop 2, 2 and 2",
    "%r = xla_gpu.loop (%a, %b)[%i] -> (%x) in #two {}": "but the loop 2, 1 and 1",
    "%r = xla_gpu.loop (%a %b)[%i] -> (%x, %y) in #two {}": "",
    "%r = xla_gpu.reduce(%t) inits(%w) dimensions=[0] combiner=@add : tensor<8xf32> to tensor<f32>": "used with type f32",
    "%r = xla_gpu.loop (%a, %b)[%i] -> (%x, %y) in #two iter_args(%n = %t) -> () {}": "expected 0 operand types but had 1",
}


@pytest.mark.parametrize("line", BROKEN_TEXT)
def test_text_that_is_wrong_is_refused_where_it_is(line: str):
    with pytest.raises(ParseError) as caught:
        parse_ir(in_function(line))
    assert BROKEN_TEXT[line] in caught.value.message
    assert caught.value.place.line == LINE


GENERIC_LOOP = (
    '%r = "xla_gpu.loop"(%a, %b, %t) <{{indexing_map_attr = #two, operandSegmentSizes = array<i32: {sizes}>}}> ({{\n'
    "^bb0({arguments}):\n {last} }}) : (index, index, tensor<8xf32>) -> tensor<8xf32>"
)
ARGUMENTS = "%i: index, %x: index, %y: index, %n: tensor<8xf32>"
YIELD = '"xla_gpu.yield"(%n) : (tensor<8xf32>) -> ()'
ATOMIC = "%r = xla_gpu.atomic_rmw %t[%a] : tensor<8xf32> {{\n^bb0({}):\nxla_gpu.yield {}\n}}"
GENERIC_APPLY = '{results} = "xla_gpu.apply_indexing"({operands}) <{{indexing_map_attr = #two}}> : {type}'
BROKEN_RULES = {
    GENERIC_APPLY.format(
        results="%r", operands="%a", type="(index) -> index"
    ): "the map has 3 variables, but there are 1 operands",
    GENERIC_APPLY.format(
        results="%r", operands="%a, %b, %c", type="(index, index, index) -> index"
    ): "the map has 2 results, the op 1",
    '%r = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0), domain: d0 in [0, 3], d0 mod 2 in [0, 0]">'
    "(%a)": "no map with constraints",
    GENERIC_APPLY.format(results="%r:2", operands="%w, %b, %c", type="(i32, index, index) -> (index, index)"): "index",
    GENERIC_LOOP.format(sizes="1, 2", arguments=ARGUMENTS, last=YIELD): "2 inits, but 1 results",
    GENERIC_LOOP.format(
        sizes="2, 1", arguments="%x: index, %y: index, %n: tensor<8xf32>", last=YIELD
    ): "the map has 1 range variables, but the body 0 induction variables",
    GENERIC_LOOP.format(
        sizes="2, 1", arguments="%i: i32, %x: index, %y: index, %n: tensor<8xf32>", last=YIELD
    ): "block argument 0 is i32; it must be index",
    GENERIC_LOOP.format(
        sizes="2, 1",
        arguments="%i: index, %x: index, %y: index, %n: tensor<9xf32>",
        last='"xla_gpu.yield"(%t) : (tensor<8xf32>) -> ()',
    ): "result 0 is tensor<8xf32>, but its init tensor<8xf32> and its iter arg tensor<9xf32>",
    GENERIC_LOOP.format(
        sizes="2, 1", arguments=ARGUMENTS, last='"xla_gpu.yield"(%v) : (f32) -> ()'
    ): "yields (f32), but the loop's results are (tensor<8xf32>)",
    GENERIC_LOOP.format(sizes="2, 1", arguments=ARGUMENTS, last='"scf.yield"(%n) : (tensor<8xf32>) -> ()'): "",
    "%r = xla_gpu.pure_call @h(%t, %a) : (tensor<8xf32>, index) -> f32": "there is no function @h",
    "%r = xla_gpu.pure_call @g(%t) : (tensor<8xf32>) -> f32": "is called as (tensor<8xf32>) -> (f32)",
    "%r = xla_gpu.pure_call @g(%t, %a) : (tensor<8xf32>, index) -> f64": "@g is (tensor<8xf32>, index) -> (f32)",
    '"scf.execute_region"() ({ "xla_gpu.yield"() : () -> () }) : () -> ()': "expects parent op to be one of 'xla_gpu.loop'",
    ATOMIC.format("%it: f32", "%it, %it : f32, f32"): "must yield one f32, not f32, f32",
    ATOMIC.format("%it: f32", "%w : i32"): "must yield one f32, not i32",
    ATOMIC.format("%it: i32", "%it : i32"): "takes i32, but the elements are f32",
    ATOMIC.format("%it: vector<2xi32>", "%it : vector<2xi32>"): "takes vector<2xi32>, but the elements are f32",
    ATOMIC.format("%it: vector<2x2xf32>", "%it : vector<2x2xf32>"): "a vector must have one dimension",
    '%r = "xla_gpu.predicated_insert"(%w, %t, %a, %p) : (i32, tensor<8xf32>, index, i1) -> tensor<8xf32>': "inserts i32",
    '%r = "xla_gpu.predicated_insert"(%v, %t, %a, %p) : (f32, tensor<8xf32>, index, i1) -> tensor<9xf32>': "tensor<9xf32>",
    "%r = xla_gpu.predicated_insert %v into %d[%a] if %p : tensor<?xf32>": "must have a static shape",
    '%r = "xla_gpu.predicated_extract"(%t, %a, %p, %w) : (tensor<8xf32>, index, i1, i32) -> f32': "the fallback is i32",
    '%r = "xla_gpu.predicated_extract"(%t, %a, %p, %v) : (tensor<8xf32>, index, i1, f32) -> i32': "the result is i32",
    "%r = xla_gpu.get_dynamic_dim_size %t 1 : tensor<8xf32>": "tensor<8xf32> has no dimension 1",
    "%r = xla_gpu.allocate_shared : tensor<?xf32>": "must have a static shape",
    '%r = "xla_gpu.sync_threads"(%t) : (tensor<8xf32>) -> tensor<9xf32>': "its results are (tensor<9xf32>)",
    '%r = "xla_gpu.sync_threads"(%v) : (f32) -> f32': "operand 'arguments' at position 0",
    "%r = xla_gpu.shuffle_reduce(%v) to 16 combiner=@none : f32": "there is no function @none",
    "%r = xla_gpu.shuffle_reduce(%w) to 16 combiner=@add : i32": "@add",
    "%r = xla_gpu.reduce(%t) inits(%v) dimensions=[0] combiner=@none : tensor<8xf32> to tensor<f32>": "@none",
    "%r = xla_gpu.reduce(%t) inits(%v) dimensions=[0] combiner=@g : tensor<8xf32> to tensor<f32>": "@g",
    "%r = xla_gpu.reduce(%z) inits(%v) dimensions=[1] combiner=@add : tensor<4x8xf32> to tensor<8xf32>": "are (tensor<4xf32>), not",
    "%r = xla_gpu.reduce(%t) inits(%v) dimensions=[1] combiner=@add : tensor<8xf32> to tensor<f32>": "must be ascending and below 1",
    "%r = xla_gpu.reduce(%z) inits(%v) dimensions=[1, 0] combiner=@add : tensor<4x8xf32> to tensor<f32>": "must be ascending and below 2",
    "%r = xla_gpu.insert %m(%a) into %t at #lanes : !xla_gpu.indexed_vector<8xf32, #lanes> -> tensor<8xf32>": "range variables",
    "%r = xla_gpu.insert %m(%a, %b) into %t at #none : !xla_gpu.indexed_vector<8xf32, #lanes> -> tensor<8xf32>": "0 dims",
}


@pytest.mark.parametrize("line", BROKEN_RULES)
def test_a_broken_rule_is_named_where_it_is_broken(line: str):
    with pytest.raises(VerifyError) as caught:
        parse_ir(in_function(line))
    assert BROKEN_RULES[line] in caught.value.message
    assert caught.value.place.line >= LINE


# ---- folds and effects ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("yielded", "folds"), [("%it : f32", True), ("%v : f32", False)], ids=["what is there", "another value"]
)
def test_an_update_that_changes_nothing_folds(yielded: str, folds: bool):
    op = op_of(ATOMIC.format("%it: f32", yielded))
    assert isinstance(op, AtomicRMWOp)
    assert op.fold() == ((op.operands[0],) if folds else None)


def test_apply_indexing_folds_when_every_result_is_an_operand_or_a_number():
    block = Block(arg_types=[IndexType(), IndexType()])
    domain = "domain: d0 in [0, 3], d1 in [0, 3]"
    folded = ApplyIndexingOp(block.args, IndexingMap.parse(f"(d0, d1) -> (d1, 5, d0), {domain}")).fold()
    assert folded == [block.args[1], IntegerAttr(5, IndexType()), block.args[0]]
    assert ApplyIndexingOp(block.args, IndexingMap.parse(f"(d0, d1) -> (d1, d0 + 1), {domain}")).fold() is None


def test_a_folded_number_becomes_a_constant_op():
    from xdsl.folder import Folder

    op = ApplyIndexingOp([], IndexingMap.parse("() -> (7)"))
    found = Folder(make_context()).try_fold(op)
    assert found is not None
    (value,), (constant,) = found
    assert isinstance(constant, arith.ConstantOp)
    assert value is constant.result
    assert constant.value == IntegerAttr(7, IndexType())


def test_calls_and_maps_only_compute():
    for line in (FORMS[0], FORMS[6]):
        assert is_side_effect_free(op_of(line))
        assert is_speculatable(op_of(line))


def test_a_loop_does_what_its_body_does():
    quiet = op_of(FORMS[3])
    assert is_side_effect_free(quiet)
    assert is_speculatable(quiet)
    loud = op_of("xla_gpu.loop ()[%i] -> (%x) in #symbol {\ngpu.barrier\nxla_gpu.yield\n}")
    assert get_effects(loud) is None
    assert not is_speculatable(loud)
    assert get_effects(op_of('"xla_gpu.pdl_wait"() : () -> ()')) is None


def test_a_loop_without_iter_args_needs_no_yield():
    loop = op_of("xla_gpu.loop ()[%i] -> (%x) in #symbol {\n}")
    assert isinstance(loop, LoopOp)
    assert isinstance(loop.body.block.last_op, YieldOp)
