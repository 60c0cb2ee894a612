"""Which functions may update their tensors in place."""

import pytest

from xla_emitters.dialects.context import parse_ir
from xla_emitters.dialects.mlir import func
from xla_emitters.rewrite.in_place import Conflict, find_conflict

HEAD = """
#pair = #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 1], d1 in [0, 3]">
#next = #xla_gpu.indexing_map<"(d0) -> (d0 + 1), domain: d0 in [0, 6]">
func.func @f(%in: tensor<8xf32> {xla.slice_index = 0 : index}, %same: tensor<8xf32> {xla.slice_index = SAME : index},
             %out: tensor<8xf32> {xla.slice_index = OUT : index},
             %x: f32, %i: index {xla.range = [0 : index, 6 : index]}, %p: i1) -> tensor<8xf32>
             attributes {xla.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %j = xla_gpu.apply_indexing #next(%i)
"""

LOOP = "scf.for %v = %c0 to %c4 step %c1 iter_args(%a = %out) -> (tensor<8xf32>)"

RIGHT = {
    "through shared memory": """
        %m = xla_gpu.allocate_shared : tensor<8xf32>
        %a = tensor.insert %x into %m[%i] : tensor<8xf32>
        %s = xla_gpu.sync_threads %a : tensor<8xf32>
        %y = tensor.extract %s[%j] : tensor<8xf32>
        %b = tensor.insert %y into %out[%i] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "chain": """
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %b = tensor.insert %x into %a[%i] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "read of the current value": """
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %y = tensor.extract %a[%i] : tensor<8xf32>
        %b = tensor.insert %y into %a[%c0] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "old value, other element": """
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %y = tensor.extract %out[%j] : tensor<8xf32>
        %b = tensor.insert %y into %a[%i] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "old value, which an update before it made": """
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %b = tensor.insert %x into %a[%j] : tensor<8xf32>
        %y = tensor.extract %a[%i] : tensor<8xf32>
        %c = tensor.insert %y into %b[%c0] : tensor<8xf32>
        return %c : tensor<8xf32>""",
    "old value before a vector": """
        %k = arith.constant 4 : index
        %v = arith.constant dense<0.0> : vector<4xf32>
        %a = vector.transfer_write %v, %out[%k] {in_bounds = [true]} : vector<4xf32>, tensor<8xf32>
        %three = arith.constant 3 : index
        %y = tensor.extract %out[%three] : tensor<8xf32>
        %b = tensor.insert %y into %a[%i] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "in place, read first": f"""
        %l = {LOOP} {{
          %y = tensor.extract %in[%v] : tensor<8xf32>
          %b = tensor.insert %y into %a[%v] : tensor<8xf32>
          scf.yield %b : tensor<8xf32>
        }}
        return %l : tensor<8xf32>""",
    "in place, unrolled with bounds checks": """
        %b = scf.if %p -> (tensor<8xf32>) {
          %y = tensor.extract %in[%i] : tensor<8xf32>
          %t = tensor.insert %y into %out[%i] : tensor<8xf32>
          scf.yield %t : tensor<8xf32>
        } else {
          scf.yield %out : tensor<8xf32>
        }
        %d = scf.if %p -> (tensor<8xf32>) {
          %y = tensor.extract %in[%j] : tensor<8xf32>
          %t = tensor.insert %y into %b[%j] : tensor<8xf32>
          scf.yield %t : tensor<8xf32>
        } else {
          scf.yield %b : tensor<8xf32>
        }
        return %d : tensor<8xf32>""",
    "carried and accumulated": f"""
        %l = {LOOP} {{
          %y = tensor.extract %a[%i] : tensor<8xf32>
          %z = arith.addf %y, %x : f32
          %b = tensor.insert %z into %a[%i] : tensor<8xf32>
          scf.yield %b : tensor<8xf32>
        }}
        return %l : tensor<8xf32>""",
    "a loop that hands its tensor through": f"""
        %l = {LOOP} {{
          %y = tensor.extract %out[%v] : tensor<8xf32>
          scf.yield %a : tensor<8xf32>
        }}
        %b = tensor.insert %x into %l[%i] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "reads inside other ops": """
        %y = scf.execute_region -> (f32) {
          %z = tensor.extract %out[%i] : tensor<8xf32>
          scf.yield %z : f32
        }
        %b = tensor.insert %y into %out[%i] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "nested loops": f"""
        %l = {LOOP} {{
          %m = scf.for %w = %c0 to %c4 step %c1 iter_args(%b = %a) -> (tensor<8xf32>) {{
            %c = tensor.insert %x into %b[%w] : tensor<8xf32>
            scf.yield %c : tensor<8xf32>
          }}
          scf.yield %m : tensor<8xf32>
        }}
        return %l : tensor<8xf32>""",
}

# The first line of each says why.
WRONG = {
    "reads, after waiting, what was there before": """// it reads an older value of a tensor that tensor.insert has updated
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %s = xla_gpu.sync_threads %a : tensor<8xf32>
        %y = tensor.extract %out[%i] : tensor<8xf32>
        %b = tensor.insert %y into %s[%c0] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "updates what was there before waiting": """// 'tensor.insert': it updates an older value
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %s = xla_gpu.sync_threads %a : tensor<8xf32>
        %b = tensor.insert %x into %a[%j] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "waits with an older value": """// 'xla_gpu.sync_threads': its operand is an older value
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %s = xla_gpu.sync_threads %out : tensor<8xf32>
        %b = tensor.insert %x into %a[%j] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "reads an older value": """// it reads an older value of a tensor that tensor.insert has updated
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %y = tensor.extract %out[%i] : tensor<8xf32>
        %b = tensor.insert %y into %a[%c0] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "reads an older value, element unknown": """// it reads an older value of a tensor that tensor.insert has updated
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %y = tensor.extract %out[%c0] : tensor<8xf32>
        %b = tensor.insert %y into %a[%c0] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "reads an older value: last element of a vector": """// it reads an older value of a tensor that vector.transfer_write has
        %k = arith.constant 4 : index
        %v = arith.constant dense<0.0> : vector<4xf32>
        %a = vector.transfer_write %v, %out[%k] {in_bounds = [true]} : vector<4xf32>, tensor<8xf32>
        %seven = arith.constant 7 : index
        %y = tensor.extract %out[%seven] : tensor<8xf32>
        %b = tensor.insert %y into %a[%i] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "updates an older value": """// 'tensor.insert': it updates an older value
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %b = tensor.insert %x into %out[%j] : tensor<8xf32>
        %y = tensor.extract %a[%i] : tensor<8xf32>
        %c = tensor.insert %y into %b[%i] : tensor<8xf32>
        return %c : tensor<8xf32>""",
    "returns an older value": """// 'func.return': it returns an older value
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %b = tensor.insert %x into %a[%j] : tensor<8xf32>
        return %a : tensor<8xf32>""",
    "does not return": """// 'tensor.insert': it updates an argument that the function does not return
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %y = tensor.extract %a[%j] : tensor<8xf32>
        %b = tensor.insert %y into %in[%i] : tensor<8xf32>
        return %a : tensor<8xf32>""",
    "returns another buffer": """// 'func.return': it returns a tensor in another buffer than that of argument 2
        return %in : tensor<8xf32>""",
    "reads an older value in a later iteration": f"""// it reads an older value of a tensor that tensor.insert has updated
        %l = {LOOP} {{
          %y = tensor.extract %out[%i] : tensor<8xf32>
          %b = tensor.insert %y into %a[%v] : tensor<8xf32>
          scf.yield %b : tensor<8xf32>
        }}
        return %l : tensor<8xf32>""",
    "reads an older value of the iteration": f"""// it reads an older value of a tensor that tensor.insert has updated
        %l = {LOOP} {{
          %b = tensor.insert %x into %a[%v] : tensor<8xf32>
          %y = tensor.extract %a[%v] : tensor<8xf32>
          %c = tensor.insert %y into %b[%i] : tensor<8xf32>
          scf.yield %c : tensor<8xf32>
        }}
        return %l : tensor<8xf32>""",
    "does not hand to the next iteration": f"""// 'scf.for': it writes a tensor that it does not carry to the next iteration
        %l = {LOOP} {{
          %b = tensor.insert %x into %a[%v] : tensor<8xf32>
          %y = tensor.extract %b[%v] : tensor<8xf32>
          scf.yield %a : tensor<8xf32>
        }}
        return %l : tensor<8xf32>""",
    "an iteration ends with an older value": f"""// 'scf.for': it yields an older value
        %l = {LOOP} {{
          %b = tensor.insert %x into %a[%v] : tensor<8xf32>
          %c = tensor.insert %x into %b[%i] : tensor<8xf32>
          %y = tensor.extract %c[%v] : tensor<8xf32>
          scf.yield %b : tensor<8xf32>
        }}
        return %l : tensor<8xf32>""",
    "carries one buffer twice": """// 'scf.for': it carries one buffer in two arguments
        %l:2 = scf.for %v = %c0 to %c4 step %c1 iter_args(%a = %out, %b = %out) -> (tensor<8xf32>, tensor<8xf32>) {
          %c = tensor.insert %x into %a[%v] : tensor<8xf32>
          scf.yield %b, %c : tensor<8xf32>, tensor<8xf32>
        }
        return %l#1 : tensor<8xf32>""",
    "exchanges tensors": """// 'scf.for': it exchanges tensors between iterations
        %l:2 = scf.for %v = %c0 to %c4 step %c1 iter_args(%a = %out, %b = %in) -> (tensor<8xf32>, tensor<8xf32>) {
          scf.yield %b, %a : tensor<8xf32>, tensor<8xf32>
        }
        return %l#0 : tensor<8xf32>""",
    "exchanges values of one tensor": """// 'scf.for': it exchanges tensors between iterations
        %n = tensor.insert %x into %out[%i] : tensor<8xf32>
        %l:2 = scf.for %v = %c0 to %c4 step %c1 iter_args(%a = %out, %b = %n) -> (tensor<8xf32>, tensor<8xf32>) {
          scf.yield %b, %a : tensor<8xf32>, tensor<8xf32>
        }
        return %l#0 : tensor<8xf32>""",
    "does not yield": """// 'scf.if': it writes a tensor that it does not yield
        %y = scf.if %p -> (f32) {
          %a = tensor.insert %x into %out[%i] : tensor<8xf32>
          %z = tensor.extract %a[%j] : tensor<8xf32>
          scf.yield %z : f32
        } else {
          scf.yield %x : f32
        }
        %b = tensor.insert %y into %out[%i] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "yields an older value in one branch": """// 'scf.if': it writes a tensor that it does not yield
        %a = tensor.insert %x into %out[%i] : tensor<8xf32>
        %b = scf.if %p -> (tensor<8xf32>) {
          %c = tensor.insert %x into %a[%j] : tensor<8xf32>
          scf.yield %c : tensor<8xf32>
        } else {
          scf.yield %out : tensor<8xf32>
        }
        return %b : tensor<8xf32>""",
    "one of two buffers": """// its tensor may be in one of two buffers
        %a = scf.if %p -> (tensor<8xf32>) {
          scf.yield %in : tensor<8xf32>
        } else {
          scf.yield %out : tensor<8xf32>
        }
        return %a : tensor<8xf32>""",
    "updates a constant": """// 'tensor.insert': it updates a constant
        %c = arith.constant dense<1.0> : tensor<8xf32>
        %a = tensor.insert %x into %c[%i] : tensor<8xf32>
        %y = tensor.extract %a[%j] : tensor<8xf32>
        %b = tensor.insert %y into %out[%i] : tensor<8xf32>
        return %b : tensor<8xf32>""",
    "how often": """// 'scf.while': it is not known how often it runs the updates in it
        scf.while () : () -> () {
          scf.condition(%p)
        } do {
          %a = tensor.insert %x into %out[%i] : tensor<8xf32>
          %y = tensor.extract %a[%i] : tensor<8xf32>
          scf.yield
        }
        return %out : tensor<8xf32>""",
    "does to its tensors: a region": """// 'scf.execute_region': its effect on its tensors is not known
        %a = scf.execute_region -> (tensor<8xf32>) {
          scf.yield %out : tensor<8xf32>
        }
        return %a : tensor<8xf32>""",
    "does to its tensors": """// 'arith.select': its effect on its tensors is not known
        %a = arith.select %p, %out, %out : tensor<8xf32>
        return %a : tensor<8xf32>""",
}

# The same as in RIGHT, where input and output are one buffer.
WRONG_IN_PLACE = {
    "reads an older value": f"""
        %l = {LOOP} {{
          %b = tensor.insert %x into %a[%v] : tensor<8xf32>
          %y = tensor.extract %in[%v] : tensor<8xf32>
          scf.yield %b : tensor<8xf32>
        }}
        return %l : tensor<8xf32>""",
    "reads an older value of a neighbour": f"""
        %l = {LOOP} {{
          %w = xla_gpu.apply_indexing #next(%v)
          %y = tensor.extract %in[%v] : tensor<8xf32>
          %b = tensor.insert %y into %a[%w] : tensor<8xf32>
          scf.yield %b : tensor<8xf32>
        }}
        return %l : tensor<8xf32>""",
}


def conflict_of(body: str, in_place: bool, *, same: str = "") -> Conflict | None:
    """`same`: the number of the buffer of another input; by default that of the output, which an entry then may read."""
    out = "0" if in_place else "1"
    module = parse_ir(HEAD.replace("OUT", out).replace("SAME", same or out) + body + "\n}")
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    return find_conflict(function)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT.keys())
def test_updates_that_may_happen_in_place(body: str, in_place: bool):
    assert conflict_of(body, in_place) is None


READS_THE_OUTPUT = (
    "a loop that hands its tensor through",
    "read of the current value",
    "old value, other element",
    "carried and accumulated",
    "reads inside other ops",
)


@pytest.mark.parametrize("what", RIGHT)
def test_an_entry_does_not_read_an_output_that_is_no_input(what: str):
    """The seed's rule: outputs are used once, in a chain."""
    conflict = conflict_of(RIGHT[what], in_place=False, same="2")
    if what in READS_THE_OUTPUT or "old value" in what:
        assert conflict.op.name in ("tensor.extract", "vector.transfer_read")
        assert conflict.why == "it reads an output of the entry, which is written once and used for nothing else"
    else:
        assert conflict is None


def test_a_function_that_is_no_kernel_may_return_any_argument():
    module = parse_ir("""
      func.func @f(%a: tensor<8xf32>, %b: tensor<8xf32>, %x: f32) -> tensor<8xf32> {
        %c0 = arith.constant 0 : index
        %0 = tensor.insert %x into %a[%c0] : tensor<8xf32>
        return %0 : tensor<8xf32>
      }""")
    (function,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
    assert find_conflict(function) is None


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG.keys())
def test_updates_that_may_not(body: str):
    conflict = conflict_of(body, in_place=False)
    assert body.splitlines()[0].removeprefix("// ") in f"'{conflict.op.name}': {conflict.why}"


@pytest.mark.parametrize("body", WRONG_IN_PLACE.values(), ids=WRONG_IN_PLACE.keys())
def test_one_buffer_for_input_and_output_needs_reads_first(body: str):
    """With two buffers the same programs are right."""
    assert conflict_of(body, in_place=False) is None
    conflict = conflict_of(body, in_place=True)
    assert conflict.op.name == "tensor.extract"
    assert conflict.update.name == "tensor.insert"
