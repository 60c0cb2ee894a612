"""Buffers, subscripts and overlapping accesses, against enumeration."""

import itertools
from collections.abc import Iterator

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import func, scf, tensor
from xla_emitters.dialects.xla_gpu import ApplyIndexingOp
from xla_emitters.rewrite.accesses import TensorAccess, accesses_in, are_disjoint, buffer_of, subscript, trip_count


def function_of(module: ModuleOp) -> func.FuncOp:
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    return function


def index_of(expression: str, loops: str = "") -> ApplyIndexingOp:
    """The apply_indexing of `expression` over two arguments, d0 in [0, 63] and d1 in [0, 3]."""
    module = parse_ir(f"""
        #map = #xla_gpu.indexing_map<"(d0, d1) -> ({expression}), domain: d0 in [0, 63], d1 in [0, 3]">
        func.func @f(%a: index, %b: index) -> index {{
          %k = xla_gpu.apply_indexing #map(%a, %b)
          return %k : index
        }}""")
    (op,) = (op for op in module.walk() if isinstance(op, ApplyIndexingOp))
    return op


@pytest.mark.parametrize(
    ("expression", "stride"),
    [
        ("d0 * 4 + d1", 1),
        ("d0", 0),
        ("d1 * 3 - d1", 2),
        ("d1 * -1 + 7", -1),
        ("(d0 mod 4) * 2 + d1", 1),
        ("(d0 + d1) mod 8", None),
        ("d1 floordiv 2 + d1", None),
        ("d0 * d1", None),
    ],
)
def test_stride_is_the_growth_of_the_index(expression: str, stride: int | None):
    """The stride holds for every value, or there is none to give."""
    op = index_of(expression)
    assert subscript(op.results[0]).stride(op.operands[1]) == stride
    growths = {op.map.evaluate((a, b + 1))[0] - op.map.evaluate((a, b))[0] for a in range(64) for b in range(3)}
    assert stride is None or growths == {stride}


@pytest.mark.parametrize(
    ("expression", "divisor"),
    [
        ("d0 * 4", 4),
        ("d0 * 4 + d1 * 6", 2),
        ("d0 * 4 + 1", 1),
        ("(d0 * 8) mod 12", 4),
        ("(d0 mod 6) * 4", 4),
        ("(d0 * 8) floordiv 2", 1),
        ("(d0 * 2) * (d1 * 3)", 6),
        ("d0 * 0 + 24", 24),
        ("d0 - d0", 0),
    ],
)
def test_divisor_divides_every_value(expression: str, divisor: int):
    op = index_of(expression)
    assert subscript(op.results[0]).divisor() == divisor
    values = [op.map.evaluate((a, b))[0] for a in range(64) for b in range(4)]
    assert not any(value % divisor if divisor else value for value in values)


def test_induction_variable_divides_by_its_step():
    module = parse_ir("""
        func.func @f() {
          %c4 = arith.constant 4 : index
          %c12 = arith.constant 12 : index
          %c6 = arith.constant 6 : index
          scf.for %v = %c4 to %c12 step %c6 {
          }
          return
        }""")
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    assert subscript(loop.body.block.args[0]).divisor() == 2  # 4 and 10
    assert trip_count(loop) == 2


def test_equal_terms_cancel_through_nested_maps():
    """(d0 mod 3) * 4 of one op and of another on the same value are one term."""
    module = parse_ir("""
        #a = #xla_gpu.indexing_map<"(d0) -> ((d0 mod 3) * 4), domain: d0 in [0, 63]">
        #b = #xla_gpu.indexing_map<"(d0, d1) -> (d1 + (d0 mod 3) * 4), domain: d0 in [0, 63], d1 in [0, 3]">
        func.func @f(%i: index, %j: index) -> (index, index) {
          %c1 = arith.constant 1 : index
          %x = xla_gpu.apply_indexing #a(%i)
          %z = arith.addi %x, %j : index
          %y = xla_gpu.apply_indexing #b(%i, %c1)
          return %z, %y : index, index
        }""")
    first, second = function_of(module).body.block.last_op.operands
    difference = subscript(second) + subscript(first).scaled(-1)
    assert difference.constant == 1
    assert dict(difference.terms) == {function_of(module).body.block.args[1]: -1}


def test_buffers_are_found_through_loops_branches_and_writes():
    module = parse_ir("""
        func.func @f(%a: tensor<8xf32> {xla.slice_index = 3 : index}, %b: tensor<8xf32>, %c: tensor<8xf32> {xla.slice_index = 3 : index},
                     %x: f32, %p: i1) -> (tensor<8xf32>, tensor<8xf32>) {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %l:2 = scf.for %v = %c0 to %c1 step %c1 iter_args(%i = %b, %j = %a) -> (tensor<8xf32>, tensor<8xf32>) {
            %t = tensor.insert %x into %i[%v] : tensor<8xf32>
            scf.yield %t, %j : tensor<8xf32>, tensor<8xf32>
          }
          %same = scf.if %p -> (tensor<8xf32>) {
            %u = tensor.insert %x into %l#0[%c0] : tensor<8xf32>
            scf.yield %u : tensor<8xf32>
          } else {
            scf.yield %l#0 : tensor<8xf32>
          }
          %either = scf.if %p -> (tensor<8xf32>) {
            scf.yield %a : tensor<8xf32>
          } else {
            scf.yield %b : tensor<8xf32>
          }
          return %same, %either : tensor<8xf32>, tensor<8xf32>
        }""")
    function = function_of(module)
    a, b, c, *_ = function.body.block.args
    loop, same, either = (op for op in function.body.block.ops if isinstance(op, scf.ForOp | scf.IfOp))
    assert buffer_of(a) == buffer_of(c) == IntegerAttr.from_index_int_value(3)
    assert buffer_of(loop.results[1]) == buffer_of(loop.body.block.args[2]) == buffer_of(a)
    assert buffer_of(same.results[0]) is b
    assert buffer_of(either.results[0]) is None


def test_a_hundred_branches_in_a_row_have_one_buffer():
    """There are 2^100 ways through them; each value is followed once."""
    branches = "\n".join(
        f"""%t{i + 1} = scf.if %p -> (tensor<8xf32>) {{
              %u{i} = tensor.insert %x into %t{i}[%c0] : tensor<8xf32>
              scf.yield %u{i} : tensor<8xf32>
            }} else {{
              scf.yield %t{i} : tensor<8xf32>
            }}"""
        for i in range(100)
    )
    module = parse_ir(f"""
        func.func @f(%t0: tensor<8xf32>, %x: f32, %p: i1) -> tensor<8xf32> {{
          %c0 = arith.constant 0 : index
          {branches}
          return %t100 : tensor<8xf32>
        }}""")
    block = function_of(module).body.block
    last = block.last_op
    assert buffer_of(last.operands[0]) is block.args[0]


# Meeting, by running the loops --------------------------------------------------------------------------------------------------


def runs(trips: tuple[int, int], one: tuple[int, int, int], other: tuple[int, int, int], where: str):
    """Every run of two accesses in order: (access number, first element).

    The accesses are at base + u * outer + v * inner; where "inner": both in the inner loop, one first; "around": one stands in the
    outer loop before the inner one, with v = 0.
    """
    for u in range(trips[0]):
        if where == "around":
            yield 0, one[0] + one[1] * u
        for v in range(trips[1]):
            if where == "inner":
                yield 0, one[0] + one[1] * u + one[2] * v
            yield 1, other[0] + other[1] * u + other[2] * v


def meets(events: Iterator[tuple[int, int]], earlier: int, length: int) -> bool:
    """Whether some run of the other access comes after one of `earlier` that shares an element."""
    seen: set[int] = set()
    for number, start in events:
        touched = set(range(start, start + (length if number == 0 else 1)))
        if number == earlier:
            seen |= touched
        elif seen & touched:
            return True
    return False


def two_accesses(
    trips: tuple[int, int], one: tuple[int, int, int], other: tuple[int, int, int], where: str, length: int
) -> tuple[TensorAccess, TensorAccess]:
    if length == 1:
        access = "%x = tensor.extract %t[%p] : tensor<512xf32>"
    else:
        access = f"%x = vector.transfer_read %t[%p], %z {{in_bounds = [true]}} : tensor<512xf32>, vector<{length}xf32>"
    first = f"""
        %p = xla_gpu.apply_indexing #one(%u, {"%v" if where == "inner" else "%c0"})
        {access}"""
    module = parse_ir(f"""
        #one = #xla_gpu.indexing_map<"(d0, d1) -> ({one[0]} + d0 * {one[1]} + d1 * {one[2]}), domain: d0 in [0, 9], d1 in [0, 9]">
        #two = #xla_gpu.indexing_map<"(d0, d1) -> ({other[0]} + d0 * {other[1]} + d1 * {other[2]}), domain: d0 in [0, 9], d1 in [0, 9]">
        func.func @f(%t: tensor<512xf32>) {{
          %z = arith.constant 0.0 : f32
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %m = arith.constant {trips[0]} : index
          %n = arith.constant {trips[1]} : index
          scf.for %u = %c0 to %m step %c1 {{
            {first if where == "around" else ""}
            scf.for %v = %c0 to %n step %c1 {{
              {first if where == "inner" else ""}
              %q = xla_gpu.apply_indexing #two(%u, %v)
              %y = tensor.extract %t[%q] : tensor<512xf32>
            }}
          }}
          return
        }}""")
    a, b = accesses_in(function_of(module))
    return a, b


SHAPES = [
    (trips, one, other, where, length)
    for trips in ((1, 4), (3, 4))
    for one in itertools.product((20, 21), (0, 4), (0, 1))
    for other in itertools.product((21, 23), (0, 4, -4), (1, -1))
    for where in ("inner", "around")
    for length in (1, 2)
]


def test_never_meet_is_a_proof():
    """Whenever are_disjoint says so, no run of the later access touches what an earlier run of the other touched.

    Every fifth shape, which gives each value of each part with each of any other.
    """
    proved = 0
    for trips, one, other, where, length in SHAPES[::5]:
        a, b = two_accesses(trips, one, other, where, length)
        for number, (earlier, later) in enumerate(((a, b), (b, a))):
            if are_disjoint(earlier, later):
                proved += 1
                assert not meets(runs(trips, one, other, where), number, length), (trips, one, other, where, length)
    assert proved > 30


def test_never_meet_proves_what_in_place_kernels_need():
    """Same index, read before write: later reads are of other elements. The other way round they are not."""
    a, b = two_accesses((3, 4), (20, 4, 1), (20, 4, 1), "inner", 1)
    assert are_disjoint(b, a)
    assert not are_disjoint(a, b)


def test_iterations_of_loops_around_do_not_count_within():
    """Each run of the inner loop touches every element once, the outer loop repeats it."""
    a, b = two_accesses((3, 4), (20, 0, 1), (20, 0, 1), "inner", 1)
    (_, inner) = (op for op in a.op.get_toplevel_object().walk() if isinstance(op, scf.ForOp))
    assert are_disjoint(b, a, within=inner)
    assert not are_disjoint(b, a)


def test_accesses_without_one_index_may_be_anywhere():
    module = parse_ir("""
        func.func @f(%t: tensor<8x8xf32>, %i: index) -> f32 {
          %x = tensor.extract %t[%i, %i] : tensor<8x8xf32>
          return %x : f32
        }""")
    (access,) = accesses_in(function_of(module))
    assert isinstance(access.op, tensor.ExtractOp)
    assert access.index is None
    assert not are_disjoint(access, access)


def test_indices_of_which_nothing_is_known_may_be_equal():
    """Without a range, two numbers may be one; a number and its neighbour are two, whatever it is."""
    module = parse_ir("""
        func.func @f(%t: tensor<8xf32>, %i: index, %j: index) -> (f32, f32, f32) {
          %c1 = arith.constant 1 : index
          %k = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 + 1), domain: d0 in [0, 6]">(%i)
          %x = tensor.extract %t[%i] : tensor<8xf32>
          %y = tensor.extract %t[%j] : tensor<8xf32>
          %z = tensor.extract %t[%k] : tensor<8xf32>
          return %x, %y, %z : f32, f32, f32
        }""")
    x, y, z = accesses_in(function_of(module))
    assert not are_disjoint(x, y)
    assert are_disjoint(x, z)
