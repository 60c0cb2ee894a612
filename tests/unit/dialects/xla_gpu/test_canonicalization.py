"""Canonicalization of apply_indexing and loop: the results, and that they compute the same."""

import random
from itertools import product

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.transforms.canonicalize import CanonicalizePass

from xla_emitters.dialects.context import make_context, parse_ir
from xla_emitters.dialects.mlir import arith, func, gpu
from xla_emitters.dialects.mlir_printer import print_ir
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp, LoopOp, loops


def canonicalized(text: str) -> ModuleOp:
    module = parse_ir(text)
    CanonicalizePass().apply(make_context(), module)
    module.verify()
    return module


def body_lines(module: ModuleOp) -> list[str]:
    """The maps' aliases, then the function's lines without its first and last."""
    lines = print_ir(module).splitlines()
    start = next(i for i, line in enumerate(lines) if "func.func" in line)
    return [*(line for line in lines if line.startswith("#")), *(line.strip() for line in lines[start + 1 : -2])]


def of_index(*lines: str, result: str = "%r", arguments: str = "%a: index, %b: index") -> str:
    body = "\n".join(lines)
    return f"func.func @f({arguments}) -> index {{\n{body}\n return {result} : index }}"


# ---- apply_indexing --------------------------------------------------------------------------------------------------


def test_symbols_become_dims_and_keep_their_names():
    text = of_index(
        '%r = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> (bl_x * 512 + th_x * 4 + vector_index), '
        'domain: th_x in [0, 127], bl_x in [0, 9], vector_index in [0, 3]">(%a, %b)[%c]',
        arguments="%a: index, %b: index, %c: index",
    )
    assert body_lines(canonicalized(text))[0] == (
        '#map = #xla_gpu.indexing_map<"(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index), '
        'domain: th_x in [0, 127], bl_x in [0, 9], vector_index in [0, 3]">'
    )


def test_the_map_is_simplified_and_unused_operands_go():
    text = of_index(
        '%r = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> ((d0 * 8 + d1) floordiv 8 + d0), '
        'domain: d0 in [0, 9], d1 in [0, 7]">(%a, %b)'
    )
    assert body_lines(canonicalized(text)) == [
        '#map = #xla_gpu.indexing_map<"(d0) -> (d0 * 2), domain: d0 in [0, 9]">',
        "%r = xla_gpu.apply_indexing #map(%a)",
        "return %r : index",
    ]


def test_constant_operands_go_into_the_map():
    text = of_index(
        "%c = arith.constant 3 : index",
        '%r = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), '
        'domain: d0 in [0, 9], d1 in [0, 3]">(%a, %c)',
    )
    assert body_lines(canonicalized(text))[:2] == [
        '#map = #xla_gpu.indexing_map<"(d0) -> (d0 * 4 + 3), domain: d0 in [0, 9]">',
        "%r = xla_gpu.apply_indexing #map(%a)",
    ]


def test_results_that_are_an_operand_or_a_constant_are_no_results():
    text = (
        "func.func @f(%a: index, %b: index) -> (index, index, index) {\n"
        '%r:3 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d1, d0 * 2, 7), '
        'domain: d0 in [0, 9], d1 in [0, 3]">(%a, %b)\n'
        "return %r#0, %r#1, %r#2 : index, index, index }"
    )
    module = canonicalized(text)
    assert body_lines(module) == [
        '#map = #xla_gpu.indexing_map<"(d0) -> (d0 * 2), domain: d0 in [0, 9]">',
        "%r = xla_gpu.apply_indexing #map(%a)",
        "%r_0 = arith.constant 7 : index",
        "return %b, %r, %r_0 : index, index, index",
    ]


def test_results_that_nobody_uses_go():
    text = of_index(
        '%r:2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 2, d1 * 3), '
        'domain: d0 in [0, 9], d1 in [0, 3]">(%a, %b)',
        result="%r#1",
    )
    assert body_lines(canonicalized(text))[0] == (
        '#map = #xla_gpu.indexing_map<"(d0) -> (d0 * 3), domain: d0 in [0, 3]">'
    )


def test_a_chain_becomes_one_map_in_which_each_value_has_one_dim():
    text = of_index(
        '%0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 9], d1 in [0, 9]">(%a, %b)',
        '%r = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 2 + d1), '
        'domain: d0 in [0, 18], d1 in [0, 9]">(%0, %a)',
    )
    assert body_lines(canonicalized(text))[:2] == [
        '#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 3 + d1 * 2), domain: d0 in [0, 9], d1 in [0, 9]">',
        "%r = xla_gpu.apply_indexing #map(%a, %b)",
    ]


def test_the_second_result_of_a_producer_is_taken_when_it_is_the_operand():
    """Upstream looks at result 0 whichever is the operand."""
    text = of_index(
        '%0:2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 2, d0 * 5), domain: d0 in [0, 9]">(%a)',
        '%r = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 + 1), domain: d0 in [0, 45]">(%0#1)',
    )
    assert '"(d0) -> (d0 * 5 + 1), domain: d0 in [0, 9]"' in body_lines(canonicalized(text))[0]


def test_a_producer_with_other_uses_is_left_alone_unless_that_simplifies():
    lines = (
        '%0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 9], d1 in [0, 7]">(%a, %b)',
        "%u = arith.addi %0, %0 : index",
    )
    kept = of_index(
        *lines,
        '%1 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 + 1), domain: d0 in [0, 79]">(%0)',
        "%r = arith.addi %1, %u : index",
    )
    folded = of_index(
        *lines,
        '%1 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 8), domain: d0 in [0, 79]">(%0)',
        "%r = arith.addi %1, %u : index",
    )
    assert "%1 = xla_gpu.apply_indexing #map1(%0)" in body_lines(canonicalized(kept))
    assert body_lines(canonicalized(folded)) == [
        '#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 9], d1 in [0, 7]">',
        "%0 = xla_gpu.apply_indexing #map(%a, %b)",
        "%u = arith.addi %0, %0 : index",
        "%r = arith.addi %a, %u : index",
        "return %r : index",
    ]


def test_the_new_op_is_where_the_old_one_was_from():
    text = of_index(
        '%r = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 2), domain: d0 in [0, 9], d1 in [0, 3]">(%a, %b) '
        'loc("add_0"("gelu.hlo":19:3))'
    )
    (function,) = canonicalized(text).ops
    op = function.regions[0].block.first_op
    assert op is not None
    assert 'loc("add_0"("gelu.hlo":19:3))' in print_ir(op, locations=True)


def random_expression(rng: random.Random, names: list[str], depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*names, str(rng.randint(0, 9))])
    left, right = random_expression(rng, names, depth - 1), random_expression(rng, names, depth - 1)
    match rng.randrange(5):
        case 0:
            return f"({left} + {right})"
        case 1:
            return f"({left} - {right})"
        case 2:
            return f"({left} * {rng.randint(-3, 8)})"
        case 3:
            return f"({left} floordiv {rng.choice([2, 3, 4, 8])})"
        case _:
            return f"({left} mod {rng.choice([2, 3, 4, 8])})"


def evaluate(module: ModuleOp, arguments: dict[str, int]) -> list[int]:
    """The results of the only function, which has only apply_indexing and arith ops."""
    (function,) = module.ops
    assert isinstance(function, func.FuncOp)
    block = function.body.block
    values: dict[SSAValue, int] = {argument: arguments[str(argument.name_hint)] for argument in block.args}
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        match op:
            case ApplyIndexingOp():
                dims = op.map.num_dims
                results = op.map.evaluate(operands[:dims], operands[dims:])
                values |= dict(zip(op.results, results, strict=True))
            case arith.ConstantOp(value=IntegerAttr() as constant):
                values[op.result] = constant.value.data
            case func.ReturnOp():
                return operands
            case _:
                raise AssertionError(op.name)
    raise AssertionError("no return")


def random_chain(seed: int) -> tuple[str, dict[str, int]]:
    """Three maps over two indices, with symbols, repeated operands, constants and two results; and the bounds of the indices."""
    rng = random.Random(seed)
    bounds = {"a": rng.randint(0, 4), "b": rng.randint(1, 5)}
    lines = [f"%c = arith.constant {rng.randint(0, 3)} : index"]
    # What is at hand, with its bounds; maps promise that their operands lie in their domain.
    known = {"%a": (0, bounds["a"]), "%b": (0, bounds["b"]), "%c": (0, 3)}
    for number in range(3):
        operands = [rng.choice(list(known)) for _ in range(rng.randint(1, 3))]
        split = rng.randint(0, len(operands))
        names = [f"d{i}" for i in range(split)] + [f"s{i}" for i in range(len(operands) - split)]
        expressions = [random_expression(rng, names, 3) for _ in range(2)]
        domain = ", ".join(
            f"{name} in [{low}, {high}]" for name, (low, high) in zip(names, (known[o] for o in operands), strict=True)
        )
        symbols = f"[{', '.join(names[split:])}]" if names[split:] else ""
        uses = (f"({', '.join(operands[:split])})" if split else "") + (
            f"[{', '.join(operands[split:])}]" if operands[split:] else ""
        )
        text = f"({', '.join(names[:split])}){symbols} -> ({', '.join(expressions)}), domain: {domain}"
        lines.append(f'%r{number}:2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"{text}">{uses}')
        known |= {f"%r{number}#0": (-500000, 500000), f"%r{number}#1": (-500000, 500000)}
    body = "\n".join(lines)
    text = (
        f"func.func @f(%a: index, %b: index) -> (index, index, index) {{\n{body}\n"
        "return %r0#1, %r2#0, %r2#1 : index, index, index }"
    )
    return text, bounds


@pytest.mark.parametrize("seed", range(60))
def test_chains_compute_the_same_on_every_point(seed: int):
    text, bounds = random_chain(seed)
    before, after = parse_ir(text), canonicalized(text)
    for a, b in product(range(bounds["a"] + 1), range(bounds["b"] + 1)):
        assert evaluate(after, {"a": a, "b": b}) == evaluate(before, {"a": a, "b": b})


@pytest.mark.parametrize("seed", range(60))
def test_what_is_left_at_once_is_what_no_rewrite_changes(seed: int, monkeypatch: pytest.MonkeyPatch):
    text, _ = random_chain(seed)
    found = print_ir(canonicalized(text))
    monkeypatch.setattr(loops, "is_simplest", lambda *_: False)
    assert print_ir(canonicalized(text)) == found


# ---- loop ------------------------------------------------------------------------------------------------------------


def loop(*before: str, map: str, dims: str, arguments: str, ivs: str = "%i") -> str:
    names = ", ".join(f"%x{n}" for n in range(map.split("->")[1].split("domain")[0].count(",") or 1))
    body = "\n".join(before)
    return (
        f"func.func @f({arguments}, %t: tensor<1000xi32>, %v: i32) -> tensor<1000xi32> {{\n{body}\n"
        f'%l = xla_gpu.loop ({dims})[{ivs}] -> ({names}) in #xla_gpu.indexing_map<"{map}"> '
        "iter_args(%it = %t) -> (tensor<1000xi32>) {\n"
        "%n = tensor.insert %v into %it[%x0] : tensor<1000xi32>\n"
        "xla_gpu.yield %n : tensor<1000xi32> }\n"
        "return %l : tensor<1000xi32> }"
    )


def visits(module: ModuleOp, arguments: dict[str, int]) -> list[tuple[int, ...]]:
    """For each iteration of the only loop that runs: its induction variables and the map's results."""
    (function,) = module.ops
    assert isinstance(function, func.FuncOp)
    values: dict[SSAValue, int] = {a: arguments.get(str(a.name_hint), 0) for a in function.body.block.args}
    found: list[tuple[int, ...]] = []
    for op in function.body.block.ops:
        match op:
            case ApplyIndexingOp():
                operands = [values[operand] for operand in op.operands]
                values |= dict(zip(op.results, op.map.evaluate(operands), strict=True))
            case arith.ConstantOp(value=IntegerAttr() as constant):
                values[op.result] = constant.value.data
            case LoopOp():
                dims = [values[dim] for dim in op.dims]
                if not all(d.bounds.contains(v) for d, v in zip(op.map.dims, dims, strict=True)):
                    continue
                ranges = [range(v.bounds.lower, v.bounds.upper + 1) for v in op.map.range_vars]
                for symbols in product(*ranges):
                    if op.map.constraints_satisfied(dims, symbols):
                        found.append((*symbols, *op.map.evaluate(dims, symbols)))
            case gpu.ThreadIdOp() | gpu.BlockIdOp():
                values[op.result] = arguments["id"]
            case _:
                pass
    return found


def only_loop(module: ModuleOp) -> LoopOp:
    (found,) = [op for op in module.walk() if isinstance(op, LoopOp)]
    return found


LOOPS = {
    "a constant dim inside its bounds": (
        loop(
            "%c = arith.constant 3 : index",
            map="(d0, d1)[s0] -> (d0 * 8 + d1 + s0), domain: d0 in [0, 9], d1 in [0, 7], s0 in [0, 3]",
            dims="%a, %c",
            arguments="%a: index",
        ),
        "(d0)[s0] -> (d0 * 8 + s0 + 3), domain: d0 in [0, 9], s0 in [0, 3]",
    ),
    "a constant dim outside its bounds": (
        loop(
            "%c = arith.constant 9 : index",
            map="(d0, d1)[s0] -> (d0 * 8 + d1 + s0), domain: d0 in [0, 9], d1 in [0, 7], s0 in [0, 3]",
            dims="%a, %c",
            arguments="%a: index",
        ),
        "(d0, d1)[s0] -> (d0 * 8 + d1 + s0), domain: d0 in [0, 9], d1 in [0, 7], s0 in [0, 3]",
    ),
    "an id with one value": (
        loop(
            "%one = gpu.block_id x {xla.range = [0 : index, 0 : index]}",
            map="(d0, d1)[s0] -> (d0 * 8 + d1 + s0), domain: d0 in [0, 9], d1 in [0, 7], s0 in [0, 3]",
            dims="%a, %one",
            arguments="%a: index",
        ),
        "(d0)[s0] -> (d0 * 8 + s0), domain: d0 in [0, 9], s0 in [0, 3]",
    ),
    "a dim computed by a map whose range fits": (
        loop(
            '%0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 2), domain: d0 in [0, 4]">(%a)',
            map="(d0)[s0] -> (d0 + s0), domain: d0 in [0, 8], s0 in [0, 3]",
            dims="%0",
            arguments="%a: index",
        ),
        "(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 4], s0 in [0, 3]",
    ),
    "a dim computed by a map: its bounds stay as a constraint": (
        loop(
            '%0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 4], d1 in [0, 4]">(%a, %b)',
            map="(d0)[s0] -> (d0 + s0), domain: d0 in [0, 5], s0 in [0, 3]",
            dims="%0",
            arguments="%a: index, %b: index",
        ),
        "(d0, d1)[s0] -> (d0 + d1 + s0), domain: d0 in [0, 4], d1 in [0, 4], s0 in [0, 3], d0 + d1 in [0, 5]",
    ),
    "constraints are carried along": (
        loop(
            '%0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 4], d1 in [0, 4]">(%a, %b)',
            map="(d0)[s0] -> (d0 + s0), domain: d0 in [0, 8], s0 in [0, 3], d0 + s0 in [2, 6]",
            dims="%0",
            arguments="%a: index, %b: index",
        ),
        "(d0, d1)[s0] -> (d0 + d1 + s0), domain: d0 in [0, 4], d1 in [0, 4], s0 in [0, 3], d0 + d1 + s0 in [2, 6]",
    ),
    "an idle dim that may lie outside its bounds stays": (
        loop(
            "%wide = gpu.thread_id x {xla.range = [0 : index, 9 : index]}",
            '%0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 2), domain: d0 in [0, 4]">(%a)',
            map="(d0, d1)[s0] -> (d0 + s0), domain: d0 in [0, 8], d1 in [0, 4], s0 in [0, 3]",
            dims="%0, %wide",
            arguments="%a: index",
        ),
        "(d0, d1)[s0] -> (d1 * 2 + s0), domain: d0 in [0, 4], d1 in [0, 4], s0 in [0, 3]",
    ),
}


@pytest.mark.parametrize("case", LOOPS)
def test_loops(case: str):
    text, wanted = LOOPS[case]
    before, after = parse_ir(text), canonicalized(text)
    assert str(only_loop(after).map) == wanted
    for a, b in product(range(5), range(5)):
        values = {"a": a, "b": b, "id": 0 if "one value" in case else 2 * b}
        assert visits(after, values) == visits(before, values)


def test_a_producer_of_a_loop_with_other_uses_stays():
    text = loop(
        '%0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 4], d1 in [0, 4]">(%a, %b)',
        "%u = arith.addi %0, %0 : index",
        '"test.use"(%u) : (index) -> ()',
        map="(d0)[s0] -> (d0 + s0), domain: d0 in [0, 8], s0 in [0, 3]",
        dims="%0",
        arguments="%a: index, %b: index",
    )
    module = parse_ir(text, allow_unregistered=True)
    CanonicalizePass().apply(make_context(), module)
    assert str(only_loop(module).map) == "(d0)[s0] -> (d0 + s0), domain: d0 in [0, 8], s0 in [0, 3]"
