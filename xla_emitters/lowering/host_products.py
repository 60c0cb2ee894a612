"""Matrix products as machine code: a step of a plan, for f32 and f64.

    @product.f32(words)       words: see WORDS; strides are in elements

    for each item:       LANES columns of `at_once` rows of one product of the batch; of a single row, WIDE times as many columns
      for each MOST_TERMS terms:
        panel = right[terms, columns]        packed, unless its rows are vectors already and there is one tile of rows
        for each 8, 4, 2, 1 rows:
          acc = out[rows, columns]           0 before the first terms
          for k in terms:   acc[r] = fma(left[r, k], panel[k], acc[r])
          out[rows, columns] = acc

Each element is one sum in the order of the terms, one fused multiply-add per term, so neither the tile nor the thread that computes it
changes its bits. A panel of columns that are vectors along the terms is transposed in registers. Columns beyond the last one, and results
whose columns are not neighbours, are computed in memory of the size of a tile.
Source: K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication" (2008).
"""

from __future__ import annotations

from collections.abc import Sequence

from xla_emitters.lowering.host_convolutions import TYPES, tile_of
from xla_emitters.lowering.ir_writer import IrWriter, Value

ADDRESSES = ("out", "left", "right")
WORDS: tuple[str, ...] = (
    *ADDRESSES,
    *("first", "last", "at_once", "across", "batches", "rows", "columns", "terms"),
    *("out_outer", "out_batch", "out_row", "out_column"),
    *("left_outer", "left_batch", "left_row", "left_term"),
    *("right_outer", "right_batch", "right_term", "right_column"),
)
"""The words of a step, in order."""
MOST_TERMS = 256
WIDE = 4


def product_step(element: str, vector_bytes: int) -> str:
    """LLVM IR of the step `product.f32`, or `product.f64`."""
    return _Step(element, vector_bytes).w.text


class ProductParts:
    """LLVM IR of the functions that steps of products consist of.

    w       holds the text
    type    LLVM's name of the element type
    lanes   columns of a panel
    rows    most rows of a tile
    """

    def __init__(self, element: str, vector_bytes: int) -> None:
        self.w = IrWriter()
        self.element = element
        self.type, self.bytes = TYPES[element]
        self.rows, self.lanes = tile_of(vector_bytes, element)
        self.square = vector_bytes // self.bytes
        heights = [rows for rows in (8, 4, 2, 1) if rows <= self.rows]
        for rows in heights:
            self._tile(rows, self.lanes)
        self._copy()
        self._transpose()
        self._pack()
        self._rows(heights)
        self._add()

    def name(self, part: str) -> str:
        return f'@"product.{self.element}.{part}"'

    def vector(self, lanes: int) -> str:
        return f"<{lanes} x {self.type}>"

    def _tile(self, rows: int, lanes: int) -> None:
        """Adds the products of some terms to a tile of the result; the tile has any values before the first terms."""
        w, vector = self.w, self.vector(lanes)
        fma = f"{vector} @llvm.fma.v{lanes}{self.element}"
        w.declare(f"{fma}({vector}, {vector}, {vector})")
        head = f"define internal void {self.name(f'tile{rows}x{lanes}')}"
        out = "ptr noalias %out, i64 %out_row"
        left = "ptr noalias %left, i64 %left_row, i64 %left_term"
        with w.function(f"{head}({out}, {left}, ptr noalias %panel, i64 %step, i64 %terms, i1 %is_first) noinline"):
            outs, lefts = (
                [w.at(self.type, array, w.multiply(stride, row)) for row in range(rows)]
                for array, stride in (("%out", "%out_row"), ("%left", "%left_row"))
            )
            before = [w.select("%is_first", vector, "zeroinitializer", w.load(vector, at)) for at in outs]
            with w.loop(0, "%terms", 1, [(vector, value) for value in before]) as loop:
                seen = w.load(vector, w.at(self.type, "%panel", w.multiply(loop.index, "%step")))
                place = w.multiply(loop.index, "%left_term")
                factors = [w.splat(lanes, self.type, w.load(self.type, at, place)) for at in lefts]
                loop.carry(
                    [
                        w.value(f"call {fma}({vector} {factor}, {vector} {seen}, {vector} {so_far})")
                        for factor, so_far in zip(factors, loop.values, strict=True)
                    ]
                )
            for at, value in zip(outs, loop.values, strict=True):
                w.store(vector, value, at)

    def _copy(self) -> None:
        """Copies elements between a tile in memory and the result."""
        w = self.w
        arrays = "ptr noalias %to, i64 %to_row, i64 %to_column, ptr noalias %from, i64 %from_row, i64 %from_column"
        with (
            w.function(f"define internal void {self.name('copy')}({arrays}, i64 %rows, i64 %columns) noinline"),
            w.loop(0, "%rows") as row,
            w.loop(0, "%columns") as column,
        ):
            to, source = (
                w.at(
                    self.type,
                    f"%{name}",
                    w.add(w.multiply(row.index, f"%{name}_row"), w.multiply(column.index, f"%{name}_column")),
                )
                for name in ("to", "from")
            )
            w.store(self.type, w.load(self.type, source), to)

    def _transpose(self) -> None:
        """Writes vectors along the terms as vectors along the columns, as many as a vector has lanes.

        In each round, rows i and i + n/2 are interleaved and become rows 2i and 2i + 1: the bits of an element's row and column together
        are rotated by one place, and n = 2^k rows are transposed after k rounds.
        """
        w, n, vector = self.w, self.square, self.vector(self.square)
        low = [place // 2 + n * (place % 2) for place in range(n)]
        with w.function(
            f"define internal void {self.name('transpose')}(ptr noalias %to, ptr noalias %from, i64 %column, i64 %count) noinline"
        ):
            rows = list[str]()
            for number in range(n):
                # A column beyond the last one is a copy of the last: no result has it.
                column = w.minimum(number, w.binary("sub", "%count", 1))
                rows.append(w.load(vector, w.at(self.type, "%from", w.multiply(column, "%column"))))
            for _ in range(n.bit_length() - 1):
                pairs = zip(rows[: n // 2], rows[n // 2 :], strict=True)
                rows = [
                    self._mixed(one, other, half) for one, other in pairs for half in (low, [i + n // 2 for i in low])
                ]
            for number, row in enumerate(rows):
                w.store(vector, row, w.at(self.type, "%to", number * self.lanes))

    def _mixed(self, one: str, other: str, lanes: list[int]) -> str:
        vector, mask = self.vector(self.square), ", ".join(f"i32 {lane}" for lane in lanes)
        return self.w.value(f"shufflevector {vector} {one}, {vector} {other}, <{self.square} x i32> <{mask}>")

    def _pack(self) -> None:
        """Packs some terms of the columns."""
        w, lanes, n, vector = self.w, self.lanes, self.square, self.vector(self.lanes)
        head = f"define internal void {self.name('pack')}"
        with w.function(
            f"{head}(ptr noalias %to, ptr noalias %from, i64 %term, i64 %column, i64 %terms, i64 %columns) noinline"
        ):
            are_rows = self.both(w.compare("eq", "%column", 1), w.compare("eq", "%columns", lanes))
            are_columns = w.compare("eq", "%term", 1)
            with w.when(are_rows), w.loop(0, "%terms") as term:
                row = w.load(vector, w.at(self.type, "%from", w.multiply(term.index, "%term")))
                w.store(vector, row, w.at(self.type, "%to", w.multiply(term.index, lanes)))
            turned = w.select(are_columns, "i64", w.multiply(w.binary("sdiv", "%terms", n), n), 0)
            turned = w.select(are_rows, "i64", "%terms", turned)
            with (
                w.when(self.both(are_columns, self.no(are_rows))),
                w.loop(0, turned, n) as term,
                w.loop(0, "%columns", n) as column,
            ):
                to = w.at(self.type, "%to", w.add(w.multiply(term.index, lanes), column.index))
                source = w.at(self.type, "%from", w.add(term.index, w.multiply(column.index, "%column")))
                count = w.minimum(n, w.binary("sub", "%columns", column.index))
                w.do(f"call void {self.name('transpose')}(ptr {to}, ptr {source}, i64 %column, i64 {count})")
            to = w.at(self.type, "%to", w.multiply(turned, lanes))
            source = w.at(self.type, "%from", w.multiply(turned, "%term"))
            rest = w.binary("sub", "%terms", turned)
            memory, given = f"ptr {to}, i64 {lanes}, i64 1", f"ptr {source}, i64 %term, i64 %column"
            w.do(f"call void {self.name('copy')}({memory}, {given}, i64 {rest}, i64 %columns)")

    def _rows(self, heights: list[int]) -> None:
        """Adds the products of some terms to all rows of the result's columns.

        tile  memory for a tile
        """
        w, lanes = self.w, self.lanes
        out = "ptr noalias %out, i64 %out_row, i64 %out_column"
        left = "ptr noalias %left, i64 %left_row, i64 %left_term"
        panel = "ptr noalias %panel, i64 %step, i64 %terms, i1 %is_first, ptr noalias %tile"
        with w.function(
            f"define internal void {self.name('rows')}({out}, {left}, {panel}, i64 %rows, i64 %columns) noinline"
        ):
            is_whole = self.both(w.compare("eq", "%out_column", 1), w.compare("eq", "%columns", lanes))
            begin: Value = 0
            for height in heights:
                end = w.multiply(w.binary("sdiv", "%rows", height), height)
                with w.loop(begin, end, height) as row:
                    to = w.at(self.type, "%out", w.multiply(row.index, "%out_row"))
                    source = w.at(self.type, "%left", w.multiply(row.index, "%left_row"))
                    given = (
                        f"ptr {source}, i64 %left_row, i64 %left_term, ptr %panel, i64 %step, i64 %terms, i1 %is_first"
                    )
                    tile = self.name(f"tile{height}x{lanes}")
                    with w.when(is_whole):
                        w.do(f"call void {tile}(ptr {to}, i64 %out_row, {given})")
                    with w.when(self.no(is_whole)):
                        result, memory = f"ptr {to}, i64 %out_row, i64 %out_column", f"ptr %tile, i64 {lanes}, i64 1"
                        w.do(f"call void {self.name('copy')}({memory}, {result}, i64 {height}, i64 %columns)")
                        w.do(f"call void {tile}(ptr %tile, i64 {lanes}, {given})")
                        w.do(f"call void {self.name('copy')}({result}, {memory}, i64 {height}, i64 %columns)")
                begin = end

    def _add(self) -> None:
        """Adds a product to some columns of the result, at most `lanes`; before the first terms the result has any values.

        panel, tile  memory for a panel and a tile
        """
        w, lanes = self.w, self.lanes
        out = "ptr noalias %out, i64 %out_row, i64 %out_column"
        left = "ptr noalias %left, i64 %left_row, i64 %left_term"
        right = "ptr noalias %right, i64 %right_term, i64 %right_column"
        rest = "i64 %terms, i1 %is_first, i64 %rows, i64 %columns, ptr noalias %panel, ptr noalias %tile"
        result, after = out.replace("noalias ", ""), "ptr %tile, i64 %rows, i64 %columns"
        with w.function(f"define internal void {self.name('add')}({out}, {left}, {right}, {rest}) noinline"):
            are_rows = self.both(w.compare("eq", "%right_column", 1), w.compare("eq", "%columns", lanes))
            is_direct = self.both(are_rows, w.compare("sle", "%rows", 2 * self.rows))
            with w.when(is_direct):
                w.do(
                    f"call void {self.name('rows')}({result}, ptr %left, i64 %left_row, i64 %left_term, "
                    f"ptr %right, i64 %right_term, i64 %terms, i1 %is_first, {after})"
                )
            # A sum of no terms is written too.
            some = w.select(w.compare("sgt", "%terms", 0), "i64", "%terms", 1)
            with w.loop(0, w.select(is_direct, "i64", 0, some), MOST_TERMS) as term:
                count = w.minimum(MOST_TERMS, w.binary("sub", "%terms", term.index))
                terms = w.at(self.type, "%right", w.multiply(term.index, "%right_term"))
                steps = f"i64 %right_term, i64 %right_column, i64 {count}, i64 %columns"
                w.do(f"call void {self.name('pack')}(ptr %panel, ptr {terms}, {steps})")
                factors = w.at(self.type, "%left", w.multiply(term.index, "%left_term"))
                is_first = self.both("%is_first", w.compare("eq", term.index, 0))
                w.do(
                    f"call void {self.name('rows')}({result}, ptr {factors}, i64 %left_row, i64 %left_term, "
                    f"ptr %panel, i64 {lanes}, i64 {count}, i1 {is_first}, {after})"
                )

    def memory(self) -> str:
        """The last arguments of `add`: memory of the calling function."""
        panel, tile = (
            self.w.value(f"alloca [{count} x {self.vector(self.lanes)}], align 64") for count in (MOST_TERMS, self.rows)
        )
        return f"ptr {panel}, ptr {tile}"

    def words(self, names: Sequence[str], addresses: Sequence[str]) -> dict[str, str]:
        """The words of a step, by name."""
        return {
            name: self.w.load("ptr" if name in addresses else "i64", "%words", number)
            for number, name in enumerate(names)
        }

    def both(self, one: str, other: str) -> str:
        return self.w.value(f"and i1 {one}, {other}")

    def no(self, condition: str) -> str:
        return self.w.value(f"xor i1 {condition}, true")


class _Step(ProductParts):
    """Writes the step's LLVM IR."""

    def __init__(self, element: str, vector_bytes: int) -> None:
        super().__init__(element, vector_bytes)
        self._tile(1, WIDE * self.lanes)
        w, lanes = self.w, self.lanes
        with w.function(f'define void @"product.{self.element}"(ptr %words)'):
            memory, word = self.memory(), self.words(WORDS, ADDRESSES)
            blocks, parts = (
                w.binary("sdiv", w.binary("sub", w.add(word[size], word[step]), 1), word[step])
                for size, step in (("columns", "across"), ("rows", "at_once"))
            )
            are_rows = w.compare("eq", word["right_column"], 1)
            with w.loop(word["first"], word["last"]) as item:
                rest = w.binary("sdiv", item.index, blocks)
                column = w.multiply(w.binary("srem", item.index, blocks), word["across"])
                row = w.multiply(w.binary("srem", rest, parts), word["at_once"])
                rest = w.binary("sdiv", rest, parts)
                outer, batch = (w.binary(kind, rest, word["batches"]) for kind in ("sdiv", "srem"))
                columns = w.minimum(word["across"], w.binary("sub", word["columns"], column))
                rows = w.minimum(word["at_once"], w.binary("sub", word["rows"], row))
                out = self._at(word, "out", outer=outer, batch=batch, row=row, column=column)
                left = self._at(word, "left", outer=outer, batch=batch, row=row)
                right = self._at(word, "right", outer=outer, batch=batch, column=column)
                factor = f"ptr {left}, i64 {word['left_row']}, i64 {word['left_term']}"
                is_wide = self.both(w.compare("eq", columns, WIDE * lanes), w.compare("eq", word["out_column"], 1))
                is_wide = self.both(are_rows, is_wide)
                with w.when(is_wide):
                    w.do(
                        f"call void {self.name(f'tile1x{WIDE * lanes}')}(ptr {out}, i64 0, {factor}, ptr {right}, "
                        f"i64 {word['right_term']}, i64 {word['terms']}, i1 true)"
                    )
                with w.when(self.no(is_wide)), w.loop(0, columns, lanes) as group:
                    here = w.minimum(lanes, w.binary("sub", columns, group.index))
                    to = w.at(self.type, out, w.multiply(group.index, word["out_column"]))
                    source = w.at(self.type, right, w.multiply(group.index, word["right_column"]))
                    w.do(
                        f"call void {self.name('add')}(ptr {to}, i64 {word['out_row']}, i64 {word['out_column']}, {factor}, "
                        f"ptr {source}, i64 {word['right_term']}, i64 {word['right_column']}, i64 {word['terms']}, i1 true, "
                        f"i64 {rows}, i64 {here}, {memory})"
                    )

    def _at(self, word: dict[str, str], array: str, **places: str) -> str:
        """The address of an array's element."""
        w = self.w
        steps = [w.multiply(place, word[f"{array}_{axis}"]) for axis, place in places.items()]
        return w.at(self.type, word[array], w.add(*steps))
