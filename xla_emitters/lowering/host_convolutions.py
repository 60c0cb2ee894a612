"""Convolutions as machine code: a step of a plan, for f32 and f64.

    out[b, o, p] = sum over points k of the kernel and features i of   image[b, i, p * stride + k * dilation - low] * kernel[o, i, k]

is a product of matrices: rows are the features o, columns the places (b, p), terms the pairs (i, k). For LANES places at a time:

    offsets[k, lane]      the offset of the image's element, -1 if it is outside                  for at most MOST_POINTS points at once
    panel[t, lane]        the image's elements of at most MOST_TERMS terms                  read as vectors where lanes are neighbours
    sums[o, lane]        += kernel[o, t] * panel[t, lane]                                   ROWS features at a time, by fused multiply-adds
    out[b, o, p]          = sums

All three arrays are read and written in place, in any layout, so no dimension is moved first, and memory is small: one panel, and the
sums of some features. The order of a sum depends only on the sizes of the kernel, not on the thread that computes it.

    words    see WORDS: addresses; the range of items, each LANES places of `features` features of a group; sizes; steps of the window; and
             the strides of the arrays in elements, also between groups
    scratch  memory of `scratch_bytes` bytes

At most RANK spatial dimensions; if there are fewer, the first ones have size 1. Groups of the batch use the kernel's feature groups.
Source: K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication" (2008; blocks that stay in caches); StableHLO
specification, "convolution".
"""

from __future__ import annotations

from itertools import chain

from xla_emitters.lowering.ir_writer import IrWriter, Value

RANK = 3
TYPES = {"f32": ("float", 4), "f64": ("double", 8)}
MOST_POINTS, MOST_TERMS = 64, 256
ADDRESSES = ("out", "image", "kernel", "scratch")
_EACH = range(RANK)
WORDS: tuple[str, ...] = (
    *ADDRESSES,
    "first",
    "last",
    "features",
    "groups",
    "batch",
    "ins",
    "outs",
    *(f"{name}{dim}" for name in ("places", "points", "size", "stride", "dilation", "low", "base") for dim in _EACH),
    *("out_group", "out_batch", "out_feature", *(f"out_place{dim}" for dim in _EACH)),
    *("image_group", "image_batch", "image_feature", *(f"image_place{dim}" for dim in _EACH)),
    *("kernel_group", "kernel_out", "kernel_in", *(f"kernel_point{dim}" for dim in _EACH)),
)
"""The words of a step, in order; strides are in elements."""


def tile_of(vector_bytes: int, element: str) -> tuple[int, int]:
    """Rows and lanes of a tile of sums that fills the registers of a CPU with vectors of `vector_bytes` bytes.

    >>> tile_of(64, "f32"), tile_of(32, "f32")
    ((8, 32), (4, 16))
    """
    return (8 if vector_bytes >= 64 else 4), 2 * vector_bytes // TYPES[element][1]


def scratch_bytes(features: int) -> int:
    """Bytes of memory for one thread that computes `features` features at once."""
    lanes, size = 32, 8
    return (
        MOST_POINTS * (lanes + 3) * 8 + MOST_TERMS * (lanes * size + 8) + features * lanes * size + 8 * lanes * 8 + 1024
    )


def convolution_step(element: str, vector_bytes: int) -> str:
    """LLVM IR of the step `convolution.f32`, or `convolution.f64`."""
    return _Step(element, *tile_of(vector_bytes, element)).text


class _Step:
    """Writes the step's LLVM IR."""

    def __init__(self, element: str, rows: int, lanes: int) -> None:
        self.w = IrWriter()
        self.element, self.rows, self.lanes = element, rows, lanes
        self.type, self.bytes = TYPES[element]
        self.vector, self.mask = f"<{lanes} x {self.type}>", f"<{lanes} x i1>"
        suffix = f"v{lanes}{element}"
        pointers = f"<{lanes} x ptr>"
        self.w.declare(f"{self.vector} @llvm.fma.{suffix}({self.vector}, {self.vector}, {self.vector})")
        self.w.declare(f"{self.vector} @llvm.masked.load.{suffix}.p0(ptr, i32, {self.mask}, {self.vector})")
        self.w.declare(
            f"{self.vector} @llvm.masked.gather.{suffix}.v{lanes}p0({pointers}, i32, {self.mask}, {self.vector})"
        )
        self.w.declare(f"void @llvm.masked.store.{suffix}.p0({self.vector}, ptr, i32, {self.mask})")
        self.w.declare(f"void @llvm.masked.scatter.{suffix}.v{lanes}p0({self.vector}, {pointers}, i32, {self.mask})")
        self.w.declare(f"i1 @llvm.vector.reduce.and.v{lanes}i1({self.mask})")
        for count in (rows, 1):
            self._tile(count)
        for is_spread in (False, True):
            self._offsets(is_spread=is_spread)
        self._pack()
        self._write()
        self._main()

    @property
    def text(self) -> str:
        return self.w.text

    def _name(self, part: str) -> str:
        return f'@"convolution.{self.element}.{part}"'

    # ----------------------------------------------------------------------------------------------------------- parts

    def _tile(self, rows: int) -> None:
        """Adds the products of some terms to the sums of some features."""
        w, vector = self.w, self.vector
        head = f"define internal void {self._name(f'tile{rows}')}"
        given = "ptr noalias %sums, ptr noalias %kernel, i64 %out, ptr noalias %terms, ptr noalias %panel, i64 %count"
        with w.function(f"{head}({given})"):
            before = [w.load(vector, "%sums", row) for row in range(rows)]
            rows_at = ["%kernel"]
            for _ in range(1, rows):
                rows_at.append(w.at(self.type, rows_at[-1], "%out"))
            with w.loop(0, "%count", 1, [(vector, value) for value in before]) as loop:
                seen = w.load(vector, "%panel", loop.index)
                offset = w.load("i64", "%terms", loop.index)
                sums = list[Value]()
                for at, so_far in zip(rows_at, loop.values, strict=True):
                    weight = w.splat(self.lanes, self.type, w.load(self.type, w.at(self.type, at, offset)))
                    sums.append(
                        w.value(
                            f"call {vector} @llvm.fma.v{self.lanes}{self.element}"
                            f"({vector} {weight}, {vector} {seen}, {vector} {so_far})"
                        )
                    )
                loop.carry(sums)
            for row, value in enumerate(loop.values):
                w.store(vector, value, "%sums", row)

    def _offsets(self, *, is_spread: bool) -> None:
        """For one point of the kernel, the offset of the image's element for each lane; -1 if there is none.

        at      per dimension, for each lane, place * stride - low: i64[RANK + 1, lanes]; the last row is the batch's offset
        spread  whether the image has holes
        """
        w = self.w
        sizes = ", ".join(f"i64 %k{dim}, i64 %size{dim}, i64 %base{dim}, i64 %step{dim}" for dim in _EACH)
        name = self._name("spread" if is_spread else "dense")
        with (
            w.function(f"define internal void {name}(ptr noalias %to, ptr noalias %at, {sizes})"),
            w.loop(0, self.lanes) as lane,
        ):
            place = w.load("i64", w.at("i64", "%at", w.add(lane.index, RANK * self.lanes)))
            inside = w.compare("sge", place, 0)
            for dim in _EACH:
                there = w.add(w.load("i64", w.at("i64", "%at", w.add(lane.index, dim * self.lanes))), f"%k{dim}")
                element = there
                if is_spread:
                    element = w.binary("sdiv", there, f"%base{dim}")
                    is_element = w.compare("eq", w.multiply(element, f"%base{dim}"), there)
                    inside = w.value(f"and i1 {inside}, {is_element}")
                    not_before = w.compare("sge", there, 0)
                    inside = w.value(f"and i1 {inside}, {not_before}")
                within = w.compare("ult", element, f"%size{dim}")
                inside = w.value(f"and i1 {inside}, {within}")
                place = w.add(place, w.multiply(element, f"%step{dim}"))
            w.store("i64", w.select(inside, "i64", place, -1), "%to", lane.index)

    def _pack(self) -> None:
        """Packs the image's elements of one term, zero where there is none.

        image    of the group, and the feature
        offsets  of the point: i64[lanes]
        """
        w, lanes, vector, mask = self.w, self.lanes, self.vector, self.mask
        wide, suffix = f"<{lanes} x i64>", f"v{lanes}{self.element}"
        head = f"define internal void {self._name('pack')}(ptr noalias %to, ptr noalias %image, ptr noalias %offsets, i64 %start)"
        with w.function(head):
            offsets = w.load(wide, "%offsets")
            inside = w.value(f"icmp sge {wide} {offsets}, zeroinitializer")
            neighbours = w.compare("ne", "%start", NOWHERE)
            with w.when(neighbours):
                place = w.at(self.type, "%image", "%start")
                seen = w.value(
                    f"call {vector} @llvm.masked.load.{suffix}.p0(ptr {place}, i32 {self.bytes}, {mask} {inside}, "
                    f"{vector} zeroinitializer)"
                )
                w.store(vector, seen, "%to")
            with w.when(w.value(f"xor i1 {neighbours}, true")):
                each = w.value(f"getelementptr inbounds {self.type}, ptr %image, {wide} {offsets}")
                seen = w.value(
                    f"call {vector} @llvm.masked.gather.{suffix}.v{lanes}p0(<{lanes} x ptr> {each}, i32 {self.bytes}, "
                    f"{mask} {inside}, {vector} zeroinitializer)"
                )
                w.store(vector, seen, "%to")

    def _write(self) -> None:
        """Writes the sums of one feature to the result.

        offsets  of the lanes in `out`, -1 if there is no place
        start    of the first lane if all lanes are neighbours, else NOWHERE
        """
        w, lanes, vector, mask = self.w, self.lanes, self.vector, self.mask
        wide, suffix = f"<{lanes} x i64>", f"v{lanes}{self.element}"
        head = f"define internal void {self._name('write')}(ptr noalias %out, ptr noalias %sums, ptr noalias %offsets, i64 %start)"
        with w.function(head):
            offsets, sums = w.load(wide, "%offsets"), w.load(vector, "%sums")
            is_there = w.value(f"icmp sge {wide} {offsets}, zeroinitializer")
            neighbours = w.compare("ne", "%start", NOWHERE)
            with w.when(neighbours):
                place = w.at(self.type, "%out", "%start")
                w.do(
                    f"call void @llvm.masked.store.{suffix}.p0({vector} {sums}, ptr {place}, i32 {self.bytes}, {mask} {is_there})"
                )
            with w.when(w.value(f"xor i1 {neighbours}, true")):
                each = w.value(f"getelementptr inbounds {self.type}, ptr %out, {wide} {offsets}")
                w.do(
                    f"call void @llvm.masked.scatter.{suffix}.v{lanes}p0({vector} {sums}, <{lanes} x ptr> {each}, "
                    f"i32 {self.bytes}, {mask} {is_there})"
                )

    def _start(self, offsets: str) -> str:
        """The offset of the first lane (even if it is outside) if the lanes inside are neighbours; else NOWHERE."""
        w, lanes = self.w, self.lanes
        wide = f"<{lanes} x i64>"
        loaded = w.load(wide, offsets)
        with w.loop(0, lanes, 1, [("i64", NOWHERE)]) as lane:
            here = w.load("i64", offsets, lane.index)
            start = w.binary("sub", here, lane.index)
            is_first = w.compare("eq", lane.values[0], NOWHERE)
            inside = w.compare("sge", here, 0)
            both = w.value(f"and i1 {is_first}, {inside}")
            lane.carry([w.select(both, "i64", start, lane.values[0])])
        numbers = f"<{', '.join(f'i64 {number}' for number in range(lanes))}>"
        expected = w.value(f"add {wide} {w.splat(lanes, 'i64', lane.values[0])}, {numbers}")
        as_expected = w.value(f"icmp eq {wide} {loaded}, {expected}")
        outside = w.value(f"icmp slt {wide} {loaded}, zeroinitializer")
        fits = w.value(f"or {self.mask} {as_expected}, {outside}")
        every = w.value(f"call i1 @llvm.vector.reduce.and.v{lanes}i1({self.mask} {fits})")
        return w.select(every, "i64", lane.values[0], NOWHERE)

    # ------------------------------------------------------------------------------------------------------------ step

    def _main(self) -> None:
        w, lanes = self.w, self.lanes
        with w.function(f'define void @"convolution.{self.element}"(ptr %words)'):
            word = {
                name: w.load("ptr" if name in ADDRESSES else "i64", "%words", number)
                if number
                else w.load("ptr", "%words")
                for number, name in enumerate(WORDS)
            }
            scratch, parts = word["scratch"], dict[str, str]()
            for name, size in (
                ("at", (RANK + 1) * lanes * 8),
                ("places", lanes * 8),
                ("starts", MOST_POINTS * 8),
                ("steps", MOST_POINTS * 8),
                ("terms", MOST_TERMS * 8),
                ("offsets", MOST_POINTS * lanes * 8),
                ("panel", MOST_TERMS * lanes * self.bytes),
                ("sums", 0),
            ):
                parts[name] = scratch
                scratch = w.at("i8", scratch, size)
            area = w.multiply(*(word[f"places{dim}"] for dim in _EACH))
            columns = w.multiply(area, word["batch"])
            blocks = w.binary("sdiv", w.add(columns, lanes - 1), lanes)
            parts_of_outs = w.binary(
                "sdiv", w.binary("sub", w.add(word["outs"], word["features"]), 1), word["features"]
            )
            points = w.multiply(*(word[f"points{dim}"] for dim in _EACH))
            is_spread = w.compare("ne", w.multiply(*(word[f"base{dim}"] for dim in _EACH)), 1)
            with w.loop(word["first"], word["last"]) as item:
                block = w.binary("srem", item.index, blocks)
                rest = w.binary("sdiv", item.index, blocks)
                part, group = w.binary("srem", rest, parts_of_outs), w.binary("sdiv", rest, parts_of_outs)
                begin = w.multiply(part, word["features"])
                outs = w.minimum(word["features"], w.binary("sub", word["outs"], begin))
                image = w.at(self.type, word["image"], w.multiply(group, word["image_group"]))
                kernel = w.at(
                    self.type,
                    word["kernel"],
                    w.add(w.multiply(group, word["kernel_group"]), w.multiply(begin, word["kernel_out"])),
                )
                out = w.at(
                    self.type,
                    word["out"],
                    w.add(w.multiply(group, word["out_group"]), w.multiply(begin, word["out_feature"])),
                )
                self._lanes(word, parts, w.multiply(block, lanes), columns)
                with w.loop(0, outs) as row:
                    w.store(self.vector, "zeroinitializer", parts["sums"], row.index)
                with w.loop(0, points, MOST_POINTS) as chunk:
                    count = w.minimum(MOST_POINTS, w.binary("sub", points, chunk.index))
                    self._points(word, parts, chunk.index, count, is_spread)
                    self._products(word, parts, image, kernel, count, outs)
                start = self._start(parts["places"])
                with w.loop(0, outs) as row:
                    to = w.at(self.type, out, w.multiply(row.index, word["out_feature"]))
                    sums = w.at(self.vector, parts["sums"], row.index)
                    w.do(f"call void {self._name('write')}(ptr {to}, ptr {sums}, ptr {parts['places']}, i64 {start})")

    def _lanes(self, word: dict[str, str], parts: dict[str, str], first: str, columns: str) -> None:
        """The place of each lane in the image and in the result."""
        w, rest, place = self.w, first, list[str]()
        for dim in reversed(_EACH):
            place.insert(0, w.binary("srem", rest, word[f"places{dim}"]))
            rest = w.binary("sdiv", rest, word[f"places{dim}"])
        with w.loop(0, self.lanes, 1, [("i64", each) for each in (rest, *place)]) as lane:
            batch, *at = lane.values
            is_there = w.compare("slt", w.add(first, lane.index), columns)
            to = w.add(
                w.multiply(batch, word["out_batch"]),
                *(w.multiply(at[dim], word[f"out_place{dim}"]) for dim in _EACH),
            )
            w.store("i64", w.select(is_there, "i64", to, -1), parts["places"], lane.index)
            for dim in _EACH:
                begin = w.binary("sub", w.multiply(at[dim], word[f"stride{dim}"]), word[f"low{dim}"])
                w.store("i64", begin, parts["at"], w.add(lane.index, dim * self.lanes))
            of_batch = w.select(is_there, "i64", w.multiply(batch, word["image_batch"]), -1)
            w.store("i64", of_batch, parts["at"], w.add(lane.index, RANK * self.lanes))
            # The next place: the last dimension counts up and carries into the ones before.
            following, carry = list[str](), "1"
            for dim in reversed(_EACH):
                up = w.add(at[dim], carry)
                is_end = w.compare("eq", up, word[f"places{dim}"])
                following.insert(0, w.select(is_end, "i64", 0, up))
                carry = w.select(is_end, "i64", 1, 0)
            lane.carry([w.add(batch, carry), *following])

    def _points(self, word: dict[str, str], parts: dict[str, str], first: str, count: str, is_spread: str) -> None:
        """Offsets for some points of the kernel: into the image for each lane, and into the kernel."""
        w = self.w
        with w.loop(0, count) as point:
            rest, at = w.add(first, point.index), list[str]()
            for dim in reversed(_EACH):
                at.insert(0, w.binary("srem", rest, word[f"points{dim}"]))
                rest = w.binary("sdiv", rest, word[f"points{dim}"])
            step = w.add(*(w.multiply(at[dim], word[f"kernel_point{dim}"]) for dim in _EACH))
            w.store("i64", step, parts["steps"], point.index)
            to = w.at("i64", parts["offsets"], w.multiply(point.index, self.lanes))
            given = ", ".join(
                chain.from_iterable(
                    (
                        f"i64 {w.multiply(at[dim], word[f'dilation{dim}'])}",
                        f"i64 {word[f'size{dim}']}",
                        f"i64 {word[f'base{dim}']}",
                        f"i64 {word[f'image_place{dim}']}",
                    )
                    for dim in _EACH
                )
            )
            with w.when(is_spread):
                w.do(f"call void {self._name('spread')}(ptr {to}, ptr {parts['at']}, {given})")
            with w.when(w.value(f"xor i1 {is_spread}, true")):
                w.do(f"call void {self._name('dense')}(ptr {to}, ptr {parts['at']}, {given})")
            w.store("i64", self._start(to), parts["starts"], point.index)

    def _products(
        self, word: dict[str, str], parts: dict[str, str], image: str, kernel: str, count: str, outs: str
    ) -> None:
        """Adds the products of some points and all input features to the sums."""
        w = self.w
        together = w.binary("sdiv", MOST_TERMS, count)
        with w.loop(0, word["ins"], together) as block:
            ins = w.minimum(together, w.binary("sub", word["ins"], block.index))
            with w.loop(0, ins) as feature:
                number = w.add(block.index, feature.index)
                of_feature = w.at(self.type, image, w.multiply(number, word["image_feature"]))
                of_kernel = w.multiply(number, word["kernel_in"])
                with w.loop(0, count) as point:
                    term = w.add(w.multiply(feature.index, count), point.index)
                    w.store("i64", w.add(of_kernel, w.load("i64", parts["steps"], point.index)), parts["terms"], term)
                    to = w.at(self.vector, parts["panel"], term)
                    offsets = w.at("i64", parts["offsets"], w.multiply(point.index, self.lanes))
                    start = w.load("i64", parts["starts"], point.index)
                    w.do(f"call void {self._name('pack')}(ptr {to}, ptr {of_feature}, ptr {offsets}, i64 {start})")
            terms = w.multiply(ins, count)
            whole = w.multiply(w.binary("sdiv", outs, self.rows), self.rows)
            for rows, begin, end in ((self.rows, "0", whole), (1, whole, outs)):
                with w.loop(begin, end, rows) as row:
                    sums = w.at(self.vector, parts["sums"], row.index)
                    weights = w.at(self.type, kernel, w.multiply(row.index, word["kernel_out"]))
                    w.do(
                        f"call void {self._name(f'tile{rows}')}(ptr {sums}, ptr {weights}, i64 {word['kernel_out']}, "
                        f"ptr {parts['terms']}, ptr {parts['panel']}, i64 {terms})"
                    )


NOWHERE = -(1 << 62)
"""A value that no offset has."""
