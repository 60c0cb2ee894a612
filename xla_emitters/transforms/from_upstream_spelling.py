"""Convert the IR that today's XLA prints to the form our pipeline takes: the seed's names, block and thread ids, the launch as attributes.

    %b = xla.workgroup_id x {xla.range = [0 : index, 63 : index]}      %b = gpu.block_id x {xla.range = [0 : index, 63 : index]}
    %r = scf.forall (%t) in (128) shared_outs(%o = %out) {             %t = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
      %l = ... %o ...                                             ->   %l = ... %out ...
      scf.forall.in_parallel {                                         (%r is %l)
        tensor.parallel_insert_slice %l into %o[0] [8] [1]             and on the function:
      }                                                                  gpu.known_block_size = array<i32: 128, 1, 1>
    }                                                                    gpu.known_grid_size = array<i32: 64, 1, 1>

The forall's indices become the thread ids x, y and z, and the tensor that an iteration inserts whole into a shared out becomes the forall's
result. A forall of another form is left alone. The launch is computed from the ranges of the ids. An id that does not occur has extent 1:
XLA emits an id for every larger extent, and without the id all threads along that dimension would compute the same.
The parser already reads upstream's names as the seed's ops (`dialects/xla_gpu/xla.py`); this pass converts the upstream ops that
xla-to-upstream-spelling has made.
Source: docs/reference/1 section 0 and 1.1; XLA's own IR before and after it lowers scf.forall.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import gpu as upstream
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, TensorType, i32
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xla_emitters.dialects.isa import isa
from xla_emitters.dialects.mlir import func, gpu
from xla_emitters.dialects.mlir.scf import ForallOp, InParallelOp
from xla_emitters.dialects.mlir.tensor import ParallelInsertSliceOp
from xla_emitters.dialects.ranges import RANGE_ATTR, interval_of, range_attr
from xla_emitters.dialects.xla_gpu.indexing_map import IndexingMapAttr
from xla_emitters.dialects.xla_gpu.xla import UPSTREAM_OPS, WorkgroupIdOp
from xla_emitters.rewrite.kernel_entry import BLOCK, ENTRY, GRID
from xla_emitters.rewrite.kernel_pass import KernelPass
from xla_emitters.transforms.respelling import respell

_OURS = {upstream: ours for ours, upstream in UPSTREAM_OPS.items()}
_DIMENSIONS = (gpu.DimensionEnum.X, gpu.DimensionEnum.Y, gpu.DimensionEnum.Z)


class FromUpstreamSpellingPass(KernelPass):
    name = "xla-from-upstream-spelling"

    def apply_to(self, op: ModuleOp) -> None:
        for inner in tuple(op.walk()):
            if type(inner) in _OURS:
                respell(inner, _OURS[type(inner)], IndexingMapAttr)
            elif isinstance(inner, WorkgroupIdOp):
                dimension = gpu.DimensionAttr(gpu.DimensionEnum(inner.dimension.word.data))
                block_id = gpu.BlockIdOp(dimension)
                block_id.attributes |= inner.attributes
                block_id.location = inner.location
                block_id.result.name_hint = inner.result.name_hint
                Rewriter.replace_op(inner, block_id)
        for function in op.walk():
            if isinstance(function, func.FuncOp):
                self.threads_from_forall(function)
                _set_launch(function)

    def threads_from_forall(self, function: func.FuncOp) -> None:
        """Replaces the function's only forall by its body."""
        loops = [inner for inner in function.walk() if isinstance(inner, ForallOp)]
        for loop in loops:
            if len(loops) > 1:
                self.skip(loop, "the function has more than one scf.forall, so its iterations are not the threads")
            elif (reason := _not_threads(loop)) is not None:
                self.skip(loop, reason)
            else:
                _inline_as_threads(loop)


def _not_threads(loop: ForallOp) -> str | None:
    """Why the loop's iterations are not the threads of a block; None if they are."""
    if loop.mapping is not None:
        return "it has a mapping attribute, which is not supported"
    bounds = (loop.static_lower, loop.static_step)
    if len(loop.static_upper) > 3 or any(set(b.iter_values()) - {n} for n, b in enumerate(bounds)):
        return "its indices do not count from 0 by 1 in at most three dimensions"
    if loop.dynamic_upper or any(size < 1 for size in loop.static_upper.iter_values()):
        return "its bounds are not positive constants"
    if _inserted(loop) is None:
        return "it does not insert one whole tensor into each of its shared outs"
    return None


def _inserted(loop: ForallOp) -> Sequence[SSAValue] | None:
    """The tensor that the loop's body inserts into each shared out; None unless it inserts one whole tensor into each."""
    end = loop.body.block.last_op
    assert isinstance(end, InParallelOp)
    found: dict[SSAValue, SSAValue] = {}
    for insert in end.body.block.ops:
        if not isinstance(insert, ParallelInsertSliceOp) or insert.dest in found or not _is_whole(insert):
            return None
        found[insert.dest] = insert.source
    outs = loop.shared_outs
    return [found[out] for out in outs] if found.keys() == set(outs) else None


def _is_whole(insert: ParallelInsertSliceOp) -> bool:
    dest_type = insert.dest.type
    if not isa(dest_type, TensorType) or insert.source.type != dest_type or not dest_type.has_static_shape():
        return False
    rank = dest_type.get_num_dims()
    return (
        tuple(insert.static_offsets.iter_values()) == (0,) * rank
        and tuple(insert.static_sizes.iter_values()) == dest_type.get_shape()
        and tuple(insert.static_strides.iter_values()) == (1,) * rank
    )


def _inline_as_threads(loop: ForallOp) -> None:
    results = _inserted(loop)
    assert results is not None
    thread_ids = list[upstream.ThreadIdOp]()
    for dimension, size in zip(_DIMENSIONS, loop.static_upper.iter_values(), strict=False):
        thread_id = gpu.ThreadIdOp(gpu.DimensionAttr(dimension))
        thread_id.attributes[RANGE_ATTR] = range_attr(0, size - 1)
        thread_id.location = loop.location
        thread_ids.append(thread_id)
    block = loop.body.block
    end = block.last_op
    assert end is not None
    Rewriter.erase_op(end)
    Rewriter.insert_op(thread_ids, InsertPoint.before(loop))
    values = (*(thread_id.result for thread_id in thread_ids), *loop.outputs)
    by_argument: dict[SSAValue, SSAValue] = dict(zip(block.args, values, strict=True))
    # A result may be a shared out itself.
    results = [by_argument.get(result, result) for result in results]
    Rewriter.inline_block(block, InsertPoint.before(loop), values)
    for thread_id in thread_ids:
        # inline_block has given it the block argument's name.
        thread_id.result.name_hint = f"thread_id_{thread_id.dimension.data}"
    Rewriter.replace_op(loop, [], results)


def _set_launch(function: func.FuncOp) -> None:
    """Sets the launch attributes that an entry function lacks, if all its ids have ranges."""
    if ENTRY not in function.attributes:
        return
    for name, op_type in ((BLOCK, gpu.ThreadIdOp), (GRID, gpu.BlockIdOp)):
        if name in function.attributes:
            continue
        sizes = [1, 1, 1]
        for op in function.walk():
            if isinstance(op, op_type):
                known = interval_of(op.attributes.get(RANGE_ATTR))
                if known is None:
                    break
                sizes[_DIMENSIONS.index(op.dimension.data)] = known.upper + 1
        else:
            function.attributes[name] = DenseArrayBase.from_list(i32, sizes)
