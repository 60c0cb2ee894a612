"""Small products of matrices as machine code: a step of a plan, for f32 and for f64.

    @product.f32(words)       words: out, left, right, matrices, rows, columns, terms, strides of left (3) and of right (3), in elements

    for each matrix:  for each 4 rows, then for each row:  for each 16 columns:
      acc[r] = 0                                                         4 x <16 x float>
      for k in 0 .. terms:   b = right[k, columns];   acc[r] = fma(left[r, k], b, acc[r])
      out[r, columns] = acc[r]

Each element is one sum in the order of the terms, each term by one fused multiply-add: which block it is in does not change it. A block
that goes beyond the last column is masked. Where the columns of `right` do not follow each other (it is transposed), its elements are
gathered one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

LANES = {"float": 16, "double": 8}
NAMES = {"float": "f32", "double": "f64"}
ROWS = 4


def product_steps() -> str:
    """LLVM IR of the steps `product.f32` and `product.f64`."""
    return "\n".join(line for ir_type in LANES for line in _product(ir_type))


def _product(t: str) -> Iterator[str]:
    lanes, name = LANES[t], NAMES[t]
    vector, mask, suffix = f"<{lanes} x {t}>", f"<{lanes} x i1>", f"v{lanes}{name}"
    size = 4 if t == "float" else 8
    yield f"declare {vector} @llvm.masked.load.{suffix}.p0(ptr, i32, {mask}, {vector})"
    yield f"declare void @llvm.masked.store.{suffix}.p0({vector}, ptr, i32, {mask})"
    yield f"declare {vector} @llvm.masked.gather.{suffix}.v{lanes}p0(<{lanes} x ptr>, i32, {mask}, {vector})"
    yield f"declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})"
    for rows in (ROWS, 1):
        for gathers in (False, True):
            yield from _block(t, rows, gathers=gathers, size=size)
    names = "out left right count rows columns terms lb lr lk rb rk rc".split()
    yield f"define void @product.{name}(ptr %words) {{"
    yield "entry:"
    for number, word in enumerate(names):
        yield f"  %{word}.at = getelementptr inbounds i64, ptr %words, i64 {number}"
        yield f"  %{word} = load {'ptr' if number < 3 else 'i64'}, ptr %{word}.at"
    yield "  %ob = mul i64 %rows, %columns"
    yield "  %dense = icmp eq i64 %rc, 1"
    yield "  %one_column = icmp sle i64 %columns, 1"
    yield "  %contiguous = or i1 %dense, %one_column"
    numbers = ", ".join(f"i64 {number}" for number in range(lanes))
    yield "  br label %batch"
    yield "batch:"
    yield "  %b = phi i64 [ 0, %entry ], [ %b.next, %batch.end ]"
    yield "  %b.more = icmp slt i64 %b, %count"
    yield "  br i1 %b.more, label %row.begin, label %done"
    yield "row.begin:"
    for array, stride in (("out", "ob"), ("left", "lb"), ("right", "rb")):
        yield f"  %{array}.o = mul i64 %b, %{stride}"
        yield f"  %{array}.b = getelementptr inbounds {t}, ptr %{array}, i64 %{array}.o"
    yield "  br label %row"
    yield "row:"
    yield "  %i = phi i64 [ 0, %row.begin ], [ %i.next, %row.end ]"
    yield "  %i.more = icmp slt i64 %i, %rows"
    yield "  br i1 %i.more, label %row.some, label %batch.end"
    yield "row.some:"
    yield "  %left_rows = sub i64 %rows, %i"
    yield f"  %four = icmp sge i64 %left_rows, {ROWS}"
    yield f"  %step = select i1 %four, i64 {ROWS}, i64 1"
    yield "  %i.o = mul i64 %i, %columns"
    yield f"  %out.i = getelementptr inbounds {t}, ptr %out.b, i64 %i.o"
    yield "  %i.l = mul i64 %i, %lr"
    yield f"  %left.i = getelementptr inbounds {t}, ptr %left.b, i64 %i.l"
    yield "  br label %column"
    yield "column:"
    yield "  %j = phi i64 [ 0, %row.some ], [ %j.next, %column.end ]"
    yield "  %j.more = icmp slt i64 %j, %columns"
    yield "  br i1 %j.more, label %column.some, label %row.end"
    yield "column.some:"
    yield "  %j.rest = sub i64 %columns, %j"
    yield f"  %rest0 = insertelement <{lanes} x i64> poison, i64 %j.rest, i64 0"
    yield f"  %rest = shufflevector <{lanes} x i64> %rest0, <{lanes} x i64> poison, <{lanes} x i32> zeroinitializer"
    yield f"  %mask = icmp slt <{lanes} x i64> <{numbers}>, %rest"
    yield f"  %out.j = getelementptr inbounds {t}, ptr %out.i, i64 %j"
    yield "  %j.r = mul i64 %j, %rc"
    yield f"  %right.j = getelementptr inbounds {t}, ptr %right.b, i64 %j.r"
    yield "  br i1 %contiguous, label %dense.rows, label %sparse.rows"
    given = f"ptr %out.j, i64 %columns, ptr %left.i, i64 %lr, i64 %lk, ptr %right.j, i64 %rk, i64 %rc, i64 %terms, {mask} %mask"
    for kind in ("dense", "sparse"):
        yield f"{kind}.rows:"
        yield f"  br i1 %four, label %{kind}.{ROWS}, label %{kind}.1"
        for rows in (ROWS, 1):
            yield f"{kind}.{rows}:"
            yield f"  call void @product.{name}.{kind}.{rows}({given})"
            yield "  br label %column.end"
    yield "column.end:"
    yield f"  %j.next = add i64 %j, {lanes}"
    yield "  br label %column"
    yield "row.end:"
    yield "  %i.next = add i64 %i, %step"
    yield "  br label %row"
    yield "batch.end:"
    yield "  %b.next = add i64 %b, 1"
    yield "  br label %batch"
    yield "done:"
    yield "  ret void"
    yield "}"


def _block(t: str, rows: int, *, gathers: bool, size: int) -> Iterator[str]:
    """Some rows by as many columns as a vector has lanes."""
    lanes, name = LANES[t], NAMES[t]
    vector, mask, suffix = f"<{lanes} x {t}>", f"<{lanes} x i1>", f"v{lanes}{name}"
    kind = "sparse" if gathers else "dense"
    numbers = ", ".join(f"i64 {number}" for number in range(lanes))
    yield (
        f"define internal void @product.{name}.{kind}.{rows}(ptr noalias %out, i64 %columns, ptr %left, i64 %lr, i64 %lk, "
        f"ptr %right, i64 %rk, i64 %rc, i64 %terms, {mask} %mask) {{"
    )
    yield "entry:"
    for row in range(rows):
        yield f"  %left.{row}.o = mul i64 %lr, {row}"
        yield f"  %left.{row} = getelementptr inbounds {t}, ptr %left, i64 %left.{row}.o"
    if gathers:
        yield f"  %rc0 = insertelement <{lanes} x i64> poison, i64 %rc, i64 0"
        yield f"  %rcs = shufflevector <{lanes} x i64> %rc0, <{lanes} x i64> poison, <{lanes} x i32> zeroinitializer"
        yield f"  %offsets = mul <{lanes} x i64> <{numbers}>, %rcs"
    yield "  br label %term"
    yield "term:"
    yield "  %k = phi i64 [ 0, %entry ], [ %k.next, %term.some ]"
    for row in range(rows):
        yield f"  %acc.{row} = phi {vector} [ zeroinitializer, %entry ], [ %sum.{row}, %term.some ]"
    yield "  %k.more = icmp slt i64 %k, %terms"
    yield "  br i1 %k.more, label %term.some, label %done"
    yield "term.some:"
    yield "  %k.r = mul i64 %k, %rk"
    yield f"  %b.at = getelementptr inbounds {t}, ptr %right, i64 %k.r"
    if gathers:
        yield f"  %b.each = getelementptr inbounds {t}, ptr %b.at, <{lanes} x i64> %offsets"
        yield (
            f"  %b = call {vector} @llvm.masked.gather.{suffix}.v{lanes}p0(<{lanes} x ptr> %b.each, i32 {size}, "
            f"{mask} %mask, {vector} zeroinitializer)"
        )
    else:
        yield (
            f"  %b = call {vector} @llvm.masked.load.{suffix}.p0(ptr %b.at, i32 {size}, {mask} %mask, "
            f"{vector} zeroinitializer)"
        )
    yield "  %k.l = mul i64 %k, %lk"
    for row in range(rows):
        yield f"  %a.{row}.at = getelementptr inbounds {t}, ptr %left.{row}, i64 %k.l"
        yield f"  %a.{row} = load {t}, ptr %a.{row}.at"
        yield f"  %a.{row}.0 = insertelement {vector} poison, {t} %a.{row}, i64 0"
        yield (f"  %a.{row}.all = shufflevector {vector} %a.{row}.0, {vector} poison, <{lanes} x i32> zeroinitializer")
        yield (
            f"  %sum.{row} = call {vector} @llvm.fma.{suffix}({vector} %a.{row}.all, {vector} %b, {vector} %acc.{row})"
        )
    yield "  %k.next = add i64 %k, 1"
    yield "  br label %term"
    yield "done:"
    for row in range(rows):
        yield f"  %out.{row}.o = mul i64 %columns, {row}"
        yield f"  %out.{row} = getelementptr inbounds {t}, ptr %out, i64 %out.{row}.o"
        yield f"  call void @llvm.masked.store.{suffix}.p0({vector} %acc.{row}, ptr %out.{row}, i32 {size}, {mask} %mask)"
    yield "  ret void"
    yield "}"
