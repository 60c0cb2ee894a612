"""Convolutions of images whose features are neighbours in memory, as products: a step of a plan, for f32 and f64.

In an image [batch, y, x, features] the pixels that a row of the kernel covers are neighbours, and so are their features: one product of
all results of a row by `width * features` terms, for each row of the kernel:

    for each row of the result, and each block of its features:
      out[x, o] = 0
      for each row of the kernel that is inside the image:
        out[x, o] += image[x * stride - low ..., i] * kernel[..., i, o]          all x whose windows are inside the image, at once
        the same for each other x, with the pixels that are inside

No element of the image is copied. The words are those of `host_convolutions`, without use for `features` and the scratch; an item is a row
of the result. The order of a sum depends only on the sizes.
"""

from __future__ import annotations

from xla_emitters.lowering.host_convolutions import ADDRESSES, WORDS
from xla_emitters.lowering.host_products import ProductParts
from xla_emitters.lowering.ir_writer import Value


def row_convolution_step(element: str, vector_bytes: int) -> str:
    """LLVM IR of the step `row_convolution.f32`, or `row_convolution.f64`."""
    return _Step(element, vector_bytes).w.text


class _Step(ProductParts):
    """Writes the step's LLVM IR."""

    def __init__(self, element: str, vector_bytes: int) -> None:
        super().__init__(element, vector_bytes)
        w = self.w
        with w.function(f'define void @"row_convolution.{element}"(ptr %words)'):
            self._memory, self._word = self.memory(), self.words(WORDS, ADDRESSES)
            word = self._word
            inner, end = self._inner()
            with w.loop(word["first"], word["last"]) as item:
                y, rest = w.binary("srem", item.index, word["places1"]), w.binary("sdiv", item.index, word["places1"])
                z, batch = w.binary("srem", rest, word["places0"]), w.binary("sdiv", rest, word["places0"])
                out, image = (
                    w.at(self.type, word[name], w.add(w.multiply(batch, word[f"{name}_batch"]), *offsets))
                    for name, offsets in (
                        ("out", (w.multiply(z, word["out_place0"]), w.multiply(y, word["out_place1"]))),
                        ("image", ()),
                    )
                )
                with w.loop(0, word["outs"], self.lanes) as block:
                    columns = w.minimum(self.lanes, w.binary("sub", word["outs"], block.index))
                    to = w.at(self.type, out, block.index)
                    with w.loop(0, word["places2"]) as place, w.loop(0, columns) as column:
                        offset = w.add(w.multiply(place.index, word["out_place2"]), column.index)
                        w.store(self.type, "0.0", w.at(self.type, to, offset))
                    with w.loop(0, word["points0"]) as k, w.loop(0, word["points1"]) as m:
                        rows = [self._row(0, z, k.index), self._row(1, y, m.index)]
                        inside = [w.compare("ult", row, word[f"size{dim}"]) for dim, row in enumerate(rows)]
                        with w.when(self.both(*inside)):
                            steps = [w.multiply(row, word[f"image_place{dim}"]) for dim, row in enumerate(rows)]
                            row = w.at(self.type, image, w.add(*steps))
                            weights = w.at(
                                self.type,
                                word["kernel"],
                                w.add(
                                    w.multiply(k.index, word["kernel_point0"]),
                                    w.multiply(m.index, word["kernel_point1"]),
                                    block.index,
                                ),
                            )
                            self._places(to, row, weights, columns, inner, end)
                            for first, last in ((0, inner), (end, word["places2"])):
                                with w.loop(first, last) as place:
                                    self._place(to, row, weights, columns, place.index)

    def _inner(self) -> tuple[str, str]:
        """The first position whose window is inside the image, and the end of these positions."""
        w, word = self.w, self._word
        stride, places = word["stride2"], word["places2"]
        first = w.binary("sdiv", w.binary("sub", w.add(word["low2"], stride), 1), stride)
        first = w.minimum(w.select(w.compare("slt", first, 0), "i64", 0, first), places)
        room = w.binary("sub", w.add(word["size2"], word["low2"]), word["points2"])
        end = w.minimum(w.add(w.binary("sdiv", room, stride), 1), places)
        end = w.select(w.compare("slt", room, 0), "i64", 0, end)
        return first, w.select(w.compare("slt", end, first), "i64", first, end)

    def _row(self, dim: int, place: str, point: str) -> str:
        """The row of the image that a row of the kernel covers, which may be outside."""
        w, word = self.w, self._word
        begin = w.binary("sub", w.multiply(place, word[f"stride{dim}"]), word[f"low{dim}"])
        return w.add(begin, w.multiply(point, word[f"dilation{dim}"]))

    def _places(self, out: str, row: str, weights: str, columns: str, first: str, end: str) -> None:
        """Adds the products of all positions whose windows are inside the row."""
        w, word = self.w, self._word
        begin = w.binary("sub", w.multiply(first, word["stride2"]), word["low2"])
        step = w.multiply(word["stride2"], word["ins"])
        terms = w.multiply(word["points2"], word["ins"])
        self._product(out, first, row, begin, step, weights, terms, w.binary("sub", end, first), columns)

    def _place(self, out: str, row: str, weights: str, columns: str, place: str) -> None:
        """Adds the products of one position, with the pixels that are inside the row."""
        w, word = self.w, self._word
        begin = w.binary("sub", w.multiply(place, word["stride2"]), word["low2"])
        first = w.binary("sub", 0, begin)
        first = w.select(w.compare("slt", first, 0), "i64", 0, first)
        end = w.minimum(word["points2"], w.binary("sub", word["size2"], begin))
        with w.when(w.compare("slt", first, end)):
            terms = w.multiply(w.binary("sub", end, first), word["ins"])
            source = w.at(self.type, weights, w.multiply(first, word["kernel_point2"]))
            self._product(out, place, row, w.add(begin, first), 0, source, terms, 1, columns)

    def _product(
        self,
        out: str,
        place: str,
        row: str,
        pixel: str,
        step: Value,
        weights: str,
        terms: str,
        rows: Value,
        columns: str,
    ) -> None:
        w, word = self.w, self._word
        to = w.at(self.type, out, w.multiply(place, word["out_place2"]))
        left = w.at(self.type, row, w.multiply(pixel, word["ins"]))
        w.do(
            f"call void {self.name('add')}(ptr {to}, i64 {word['out_place2']}, i64 1, ptr {left}, i64 {step}, i64 1, "
            f"ptr {weights}, i64 {word['kernel_in']}, i64 1, i64 {terms}, i1 false, i64 {rows}, i64 {columns}, {self._memory})"
        )
