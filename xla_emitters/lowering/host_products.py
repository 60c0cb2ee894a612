"""Small matrix products as machine code: a step of a plan, for f32 and f64.

    @product.f32(words)       words: out, left, right, batches, rows, columns, terms, strides of left (3) and of right (3), in elements

    for each matrix:  for each 16 columns:
      panel = right[:, columns], copied if they do not follow each other in memory
      for each 4 rows, then for each row:
        acc[r] = 0                                                         4 x <16 x float>
        for k in 0 .. terms:   b = panel[k];   acc[r] = fma(left[r, k], b, acc[r])
        out[r, columns] = acc[r]

Each element is one sum in the order of the terms, one fused multiply-add per term; the block that computes it does not change it. A
block that extends beyond the last column is masked. A panel is on the stack: there are at most MOST_TERMS terms.
"""

from __future__ import annotations

from collections.abc import Iterator

LANES = {"float": 16, "double": 8}
NAMES = {"float": "f32", "double": "f64"}
IR_TYPES = {name: ir_type for ir_type, name in NAMES.items()}
SIZES = {"float": 4, "double": 8}
ROWS = 4
ARRAYS = 3
"""The number of addresses among a step's words."""
MOST_TERMS = 2048
"""The largest number of terms of a sum: a panel has memory for this many."""


def product_step(element: str) -> str:
    """LLVM IR of the step `product.f32`, or `product.f64`."""
    return "\n".join(_product(IR_TYPES[element]))


def _product(t: str) -> Iterator[str]:
    lanes, name = LANES[t], NAMES[t]
    vector, mask, suffix = f"<{lanes} x {t}>", f"<{lanes} x i1>", f"v{lanes}{name}"
    yield f"declare {vector} @llvm.masked.load.{suffix}.p0(ptr, i32, {mask}, {vector})"
    yield f"declare void @llvm.masked.store.{suffix}.p0({vector}, ptr, i32, {mask})"
    yield f"declare {vector} @llvm.masked.gather.{suffix}.v{lanes}p0(<{lanes} x ptr>, i32, {mask}, {vector})"
    yield f"declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})"
    yield from _pack(t)
    for rows in (ROWS, 1):
        yield from _block(t, rows)
    words = "out left right batches rows columns terms lb lr lk rb rk rc".split()
    yield f"define void @product.{name}(ptr %words) {{"
    yield "entry:"
    for number, word in enumerate(words):
        yield f"  %{word}.at = getelementptr inbounds i64, ptr %words, i64 {number}"
        yield f"  %{word} = load {'ptr' if number < ARRAYS else 'i64'}, ptr %{word}.at"
    yield f"  %panel = alloca [{MOST_TERMS} x {vector}], align 64"
    yield "  %ob = mul i64 %rows, %columns"
    yield "  %dense = icmp eq i64 %rc, 1"
    yield "  br label %batch"
    yield "batch:"
    yield "  %b = phi i64 [ 0, %entry ], [ %b.next, %batch.end ]"
    yield "  %b.more = icmp slt i64 %b, %batches"
    yield "  br i1 %b.more, label %batch.some, label %done"
    yield "batch.some:"
    for array, stride in (("out", "ob"), ("left", "lb"), ("right", "rb")):
        yield f"  %{array}.o = mul i64 %b, %{stride}"
        yield f"  %{array}.b = getelementptr inbounds {t}, ptr %{array}, i64 %{array}.o"
    yield "  br label %column"
    yield "column:"
    yield "  %j = phi i64 [ 0, %batch.some ], [ %j.next, %column.end ]"
    yield "  %j.more = icmp slt i64 %j, %columns"
    yield "  br i1 %j.more, label %column.some, label %batch.end"
    yield "column.some:"
    yield "  %j.rest = sub i64 %columns, %j"
    yield f"  %rest0 = insertelement <{lanes} x i64> poison, i64 %j.rest, i64 0"
    yield f"  %rest = shufflevector <{lanes} x i64> %rest0, <{lanes} x i64> poison, <{lanes} x i32> zeroinitializer"
    yield f"  %mask = icmp slt <{lanes} x i64> {_numbers(lanes)}, %rest"
    yield f"  %out.j = getelementptr inbounds {t}, ptr %out.b, i64 %j"
    yield "  %j.r = mul i64 %j, %rc"
    yield f"  %right.j = getelementptr inbounds {t}, ptr %right.b, i64 %j.r"
    yield "  br i1 %dense, label %row.begin, label %pack"
    yield "pack:"
    yield (f"  call void @product.{name}.pack(ptr %panel, ptr %right.j, i64 %rk, i64 %rc, i64 %terms, {mask} %mask)")
    yield "  br label %row.begin"
    yield "row.begin:"
    yield "  %p = phi ptr [ %right.j, %column.some ], [ %panel, %pack ]"
    yield f"  %pk = phi i64 [ %rk, %column.some ], [ {lanes}, %pack ]"
    yield "  br label %row"
    yield "row:"
    yield "  %i = phi i64 [ 0, %row.begin ], [ %i.next, %row.end ]"
    yield "  %i.more = icmp slt i64 %i, %rows"
    yield "  br i1 %i.more, label %row.some, label %column.end"
    yield "row.some:"
    yield "  %rows.rest = sub i64 %rows, %i"
    yield f"  %four = icmp sge i64 %rows.rest, {ROWS}"
    yield f"  %step = select i1 %four, i64 {ROWS}, i64 1"
    yield "  %i.o = mul i64 %i, %columns"
    yield f"  %out.i = getelementptr inbounds {t}, ptr %out.j, i64 %i.o"
    yield "  %i.l = mul i64 %i, %lr"
    yield f"  %left.i = getelementptr inbounds {t}, ptr %left.b, i64 %i.l"
    yield f"  br i1 %four, label %rows.{ROWS}, label %rows.1"
    given = f"ptr %out.i, i64 %columns, ptr %left.i, i64 %lr, i64 %lk, ptr %p, i64 %pk, i64 %terms, {mask} %mask"
    for rows in (ROWS, 1):
        yield f"rows.{rows}:"
        yield f"  call void @product.{name}.{rows}({given})"
        yield "  br label %row.end"
    yield "row.end:"
    yield "  %i.next = add i64 %i, %step"
    yield "  br label %row"
    yield "column.end:"
    yield f"  %j.next = add i64 %j, {lanes}"
    yield "  br label %column"
    yield "batch.end:"
    yield "  %b.next = add i64 %b, 1"
    yield "  br label %batch"
    yield "done:"
    yield "  ret void"
    yield "}"


def _numbers(lanes: int) -> str:
    return f"<{', '.join(f'i64 {number}' for number in range(lanes))}>"


def _pack(t: str) -> Iterator[str]:
    """Packs some columns of `right` into vectors, one for each term."""
    lanes, name, size = LANES[t], NAMES[t], SIZES[t]
    vector, mask, suffix = f"<{lanes} x {t}>", f"<{lanes} x i1>", f"v{lanes}{name}"
    yield (
        f"define internal void @product.{name}.pack(ptr noalias %panel, ptr %right, i64 %rk, i64 %rc, i64 %terms, "
        f"{mask} %mask) {{"
    )
    yield "entry:"
    yield f"  %rc0 = insertelement <{lanes} x i64> poison, i64 %rc, i64 0"
    yield f"  %rcs = shufflevector <{lanes} x i64> %rc0, <{lanes} x i64> poison, <{lanes} x i32> zeroinitializer"
    yield f"  %offsets = mul <{lanes} x i64> {_numbers(lanes)}, %rcs"
    yield "  br label %term"
    yield "term:"
    yield "  %k = phi i64 [ 0, %entry ], [ %k.next, %term.some ]"
    yield "  %k.more = icmp slt i64 %k, %terms"
    yield "  br i1 %k.more, label %term.some, label %done"
    yield "term.some:"
    yield "  %k.r = mul i64 %k, %rk"
    yield f"  %from = getelementptr inbounds {t}, ptr %right, i64 %k.r"
    yield f"  %each = getelementptr inbounds {t}, ptr %from, <{lanes} x i64> %offsets"
    yield (
        f"  %b = call {vector} @llvm.masked.gather.{suffix}.v{lanes}p0(<{lanes} x ptr> %each, i32 {size}, "
        f"{mask} %mask, {vector} zeroinitializer)"
    )
    yield f"  %to = getelementptr inbounds {vector}, ptr %panel, i64 %k"
    yield f"  store {vector} %b, ptr %to"
    yield "  %k.next = add i64 %k, 1"
    yield "  br label %term"
    yield "done:"
    yield "  ret void"
    yield "}"


def _block(t: str, rows: int) -> Iterator[str]:
    """Some rows by as many columns as a vector has lanes."""
    lanes, name, size = LANES[t], NAMES[t], SIZES[t]
    vector, mask, suffix = f"<{lanes} x {t}>", f"<{lanes} x i1>", f"v{lanes}{name}"
    yield (
        f"define internal void @product.{name}.{rows}(ptr noalias %out, i64 %columns, ptr %left, i64 %lr, i64 %lk, "
        f"ptr %right, i64 %rk, i64 %terms, {mask} %mask) {{"
    )
    yield "entry:"
    for row in range(rows):
        yield f"  %left.{row}.o = mul i64 %lr, {row}"
        yield f"  %left.{row} = getelementptr inbounds {t}, ptr %left, i64 %left.{row}.o"
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
    yield (
        f"  %b = call {vector} @llvm.masked.load.{suffix}.p0(ptr %b.at, i32 {size}, {mask} %mask, {vector} zeroinitializer)"
    )
    yield "  %k.l = mul i64 %k, %lk"
    for row in range(rows):
        yield f"  %a.{row}.at = getelementptr inbounds {t}, ptr %left.{row}, i64 %k.l"
        yield f"  %a.{row} = load {t}, ptr %a.{row}.at"
        yield f"  %a.{row}.0 = insertelement {vector} poison, {t} %a.{row}, i64 0"
        yield f"  %a.{row}.all = shufflevector {vector} %a.{row}.0, {vector} poison, <{lanes} x i32> zeroinitializer"
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
