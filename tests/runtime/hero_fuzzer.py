"""Random fusions around a hero: transposes, reductions, concatenates, updates in place, scatters; and those of `fusion_fuzzer`.

    draw_case(9)  ->  HloModule fuzz_9                          aimed at the transpose emitter: odd sizes beside 32, a prologue of
                      fused {                                   elementwise ops, the hero, an epilogue, sometimes a result on the side
                        %v0 = s8[33,31,2] parameter(0)
                        %v1 = s8[33,31,2] not(%v0)
                        %v2 = s8[31,33,2] transpose(%v1), dimensions={1,0,2}
                        ROOT %v3 = s8[31,33,2] negate(%v2)
                      } ...

The emitters decide whether a fusion has the intended hero; a fusion that they decline is compiled another way, which must be right too.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from runtime.fusion_fuzzer import (
    COMMON,
    EXACT,
    ROUGH,
    TYPES,
    Drawing,
    Fusion,
    Value,
    list_text,
)

from xla_emitters.dtypes import Array, DType, Kind, dtype

SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 63, 64, 65, 101, 127, 128, 129)
LONG = (255, 256, 257, 511, 513, 1000, 1023, 1024, 1025, 2053, 4096, 4099)
MOST = 6_000
"""Elements of the largest array of a fusion."""
LONGEST_CHAIN = 300
"""Elements that one thread may reduce, where the reduction has no kernel of its own."""


@dataclass
class HeroDrawing(Drawing):
    """Draws one fusion of each kind; parameters with indices, for scatters, have values of their own."""

    places: dict[str, Callable[[np.random.Generator], Array]] = field(
        default_factory=dict[str, Callable[[np.random.Generator], Array]]
    )
    aliases: str = ""

    def draw_input(self, rng: np.random.Generator, parameter: Value) -> Array:
        given = self.places.get(parameter.name)
        return super().draw_input(rng, parameter) if given is None else given(rng)

    def alias(self, roots: Sequence[Value]) -> str:
        return self.aliases or super().alias(roots)

    def sizes(self, rank: int, *, longest: bool = False) -> list[int]:
        """Sizes of odd arrays; `longest`: one of them is long."""
        dims = [self.rng.choice(SIZES) for _ in range(rank)]
        if longest and dims:
            dims[self.rng.randrange(rank)] = self.rng.choice(LONG)
        while math.prod(dims) > MOST:
            at = max(range(rank), key=lambda axis: dims[axis])
            dims[at] = max(1, dims[at] // 2 + self.rng.randrange(2))
        if dims and self.rng.random() < 0.03:
            dims[self.rng.randrange(rank)] = 0
        return dims

    def any_type(self) -> DType:
        return self.rng.choice(TYPES if self.rng.random() < 0.3 else COMMON)

    def steps_in_place(self, most: int) -> Value:
        """Applies up to `most` elementwise ops, casts and selects to the last value; returns the last of them."""
        last = self.values[-1]
        for _ in range(self.rng.randrange(most + 1)):
            before = len(self.values)
            self.rng.choice(
                (self.elementwise, self.elementwise, self.elementwise, self.convert, self.select, self.compare)
            )()
            if len(self.values) > before and self.values[-1].dims == last.dims:
                last = self.values[-1]
        return last

    # ------------------------------------------------------------------------------------------- heroes

    def transpose_fusion(self) -> list[Value]:
        """All orders of dimensions, also by a copy into another layout; often several of the same kind, or a result on the side."""
        rank = self.rng.choice((2, 2, 3, 3, 3, 4, 5))
        x = self.parameter(self.any_type(), self.sizes(rank))
        x = self.steps_in_place(3)
        roots = list[Value]()
        order = self.rng.sample(range(rank), rank)
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            if self.rng.random() < 0.8:
                dims = [x.dims[axis] for axis in order]
                self.add(x.type, dims, f"transpose(%{x.name}), dimensions={list_text(order)}", x.made)
            else:
                self.add(x.type, x.dims, f"copy(%{x.name})", x.made, tuple(order))
            roots.append(self.steps_in_place(2))
            same = [value for value in self.values if value.dims == x.dims and value.made < ROUGH]
            x = self.rng.choice(same) if same else x
        if self.rng.random() < 0.25:
            roots.append(x)
        self.rng.shuffle(roots)
        return roots

    def reduction_fusion(self) -> list[Value]:
        """Rows, columns and both; one, several in one kernel, or several arrays at once; results on the side."""
        self.is_tame = self.rng.random() < 0.6
        rank = self.rng.choice((1, 2, 2, 3, 3, 4))
        self.parameter(self.any_type(), self.sizes(rank, longest=self.rng.random() < 0.4))
        roots = list[Value]()
        axes = self.rng.sample(range(rank), self.rng.randrange(1, rank + 1))
        # The executor is slow for long reductions by one thread: then only shapes with a reduction hero are drawn.
        is_long = math.prod(self.values[0].dims[axis] for axis in axes) > LONGEST_CHAIN
        if is_long:
            axes = self.rng.choice(([0], [rank - 1], list(range(rank))))
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            x = self.steps_in_place(3)
            if x.dims != self.values[0].dims:
                x = self.values[0]
            if self.rng.random() < 0.25:
                roots.append(self.add_reduce_several(x, axes)[0])
                continue
            reduced = self.add_reduce(x, axes, self.associative(x.type))
            roots.append(reduced if is_long else self.steps_in_place(2))
        same = [
            value for value in self.values[1:] if value.dims == self.values[0].dims and value not in self.parameters
        ]
        if same and self.rng.random() < 0.3:
            roots.append(self.rng.choice(same))
        self.rng.shuffle(roots)
        return list(dict.fromkeys(roots))

    def concatenate_fusion(self) -> list[Value]:
        """Two to six operands of odd sizes, some computed, some the same; an epilogue."""
        rank = self.rng.choice((1, 2, 2, 3))
        type, dims, axis = self.any_type(), self.sizes(rank), self.rng.randrange(rank)
        parts = list[Value]()
        for _ in range(self.rng.choice((2, 2, 3, 4, 4, 6))):
            if parts and self.rng.random() < 0.2:
                parts.append(self.rng.choice(parts))
                continue
            size = self.rng.choice((*SIZES[:12], dims[axis], dims[axis], 0))
            part = self.parameter(type, (*dims[:axis], size, *dims[axis + 1 :]))
            made = self.steps_in_place(2)
            parts.append(made if made.type == type and made.dims == part.dims and made.made < ROUGH else part)
        whole = (*dims[:axis], sum(part.dims[axis] for part in parts), *dims[axis + 1 :])
        names = ", ".join(f"%{part.name}" for part in parts)
        made = max(part.made for part in parts)
        self.add(type, whole, f"concatenate({names}), dimensions={{{axis}}}", made)
        return [self.steps_in_place(3)]

    def in_place_fusion(self) -> list[Value]:
        """Updates of parameters whose buffers contain the results; starts anywhere; the old elements are often read."""
        rank, count = self.rng.choice((1, 2, 2, 3)), self.rng.choice((1, 1, 1, 2))
        dims = self.sizes(rank)
        window = [self.rng.choice((size, self.rng.randrange(size + 1), 1 if size else 0)) for size in dims]
        arrays = [self.parameter(self.any_type(), dims) for _ in range(count)]
        roots = list[Value]()
        for array in arrays:
            starts = self.starts(rank)
            if self.rng.random() < 0.4:
                sizes = list_text(window)
                self.add(
                    array.type,
                    window,
                    f"dynamic-slice(%{array.name}, {starts}), dynamic_slice_sizes={sizes}",
                    array.made,
                )
            else:
                self.partner(array.type, tuple(window), EXACT)
            last = next(
                (value for value in reversed(self.values) if value.dims == tuple(window) and value.type == array.type),
                None,
            )
            update = last if last is not None and last not in arrays else self.parameter(array.type, window)
            made = self.steps_on(update)
            code = f"dynamic-update-slice(%{array.name}, %{made.name}, {starts})"
            roots.append(self.add(array.type, dims, code, max(array.made, made.made), array.minor_to_major))
        self.aliases = self._aliases(arrays, count)
        return roots

    def steps_on(self, x: Value) -> Value:
        """Up to two ops of `x`, elementwise and of its type."""
        for _ in range(self.rng.randrange(3)):
            if x.type.kind is Kind.PRED:
                code = f"not(%{x.name})"
            elif x.type.is_integer or x.type.bits >= 16:
                code = f"{self.rng.choice(('add', 'multiply', 'subtract'))}(%{x.name}, %{self.partner(x.type, x.dims, EXACT).name})"
            else:
                code = f"negate(%{x.name})" if x.type.name != "f8e8m0fnu" else f"copy(%{x.name})"
            x = self.add(x.type, x.dims, code, max(EXACT, x.made), x.minor_to_major if self.rng.random() < 0.7 else ())
        return x

    def scatter_fusion(self) -> list[Value]:
        """Windows anywhere in the array and outside; indices that collide, or that are declared sorted or unique."""
        self.is_tame = self.rng.random() < 0.6
        rank = self.rng.choice((1, 2, 2, 3))
        type, dims = self.any_type(), [max(1, size) for size in self.sizes(rank)]
        array = self.parameter(type, dims)
        mapped = self.rng.sample(range(rank), self.rng.randrange(1, rank + 1))
        count = self.rng.choice((0, 1, 2, 7, 32, 33, 100))
        window = [
            1 if axis in mapped and self.rng.random() < 0.7 else self.rng.randrange(1, size + 1)
            for axis, size in enumerate(dims)
        ]
        while count * math.prod(window) > MOST:
            count //= 2
        promise = self.rng.choice(("", "", "sorted", "unique"))
        lasts = [dims[axis] - window[axis] for axis in mapped]
        index_type = dtype(self.rng.choice(("s32", "s32", "s64", "u32", "s16")))
        rows = self.parameter(index_type, (count, len(mapped)))

        def places(rng: np.random.Generator) -> Array:
            low = -2 if index_type.kind is Kind.SIGNED else 0
            if promise == "unique":
                starts = [np.arange(0, last + 1, window[axis]) for axis, last in zip(mapped, lasts, strict=True)]
                grid = np.stack([part.ravel() for part in np.meshgrid(*starts, indexing="ij")], axis=-1)
                chosen = rng.permutation(grid)[:count]
                outside = np.full((count - len(chosen), len(mapped)), max(dims) + 1)
                found = np.concatenate([chosen, outside])
            else:
                most = [rng.choice((last, last + 3, min(last, 2))) for last in lasts]
                found = np.stack([rng.integers(low, last + 1, count) for last in most], axis=-1)
            if promise == "sorted":
                found = found[np.lexsort(found.T[::-1])]
            return found.astype(index_type.numpy)

        self.places[rows.name] = places
        self.distinct.add(rows.name)
        updates = self.partner(type, (count, *window), EXACT)
        updates = self.steps_on(updates)
        opcode = self.rng.choice(("", self.associative(type)))
        body = self.body(type, opcode) if opcode else self.replacing(type)
        said = {"sorted": ", indices_are_sorted=true", "unique": ", unique_indices=true"}.get(promise, "")
        code = (
            f"scatter(%{array.name}, %{rows.name}, %{updates.name}), update_window_dims={list_text(range(1, rank + 1))},"
            f" inserted_window_dims={{}}, scatter_dims_to_operand_dims={list_text(mapped)}, index_vector_dim=1{said},"
            f" to_apply={body}"
        )
        self.aliases = self._aliases([array], 1)
        return [self.add(type, dims, code, ROUGH, array.minor_to_major)]

    def replacing(self, type: DType) -> str:
        """A computation that returns its second operand."""
        name = f"replace_{type.name}"
        self.bodies[name] = f"{name} {{\n  %a = {type.name}[] parameter(0)\n  ROOT %b = {type.name}[] parameter(1)\n}}"
        return name

    def _aliases(self, arrays: Sequence[Value], count: int) -> str:
        """Puts each result in the buffer of its array: this makes it an update in place."""
        self.distinct |= {array.name for array in arrays}
        pairs = ", ".join(
            f"{{{number if count > 1 else ''}}}: ({self.parameters.index(array)}, {{}}, may-alias)"
            for number, array in enumerate(arrays)
        )
        return f", input_output_alias={{ {pairs} }}"


HEROES: Mapping[str, Callable[[HeroDrawing], list[Value]]] = {
    "transpose": HeroDrawing.transpose_fusion,
    "reduction": HeroDrawing.reduction_fusion,
    "concatenate": HeroDrawing.concatenate_fusion,
    "in_place": HeroDrawing.in_place_fusion,
    "scatter": HeroDrawing.scatter_fusion,
}
KINDS = ("loop", *HEROES)
# Half of all cases have no hero.
_SHARES = {"loop": 6.0, "reduction": 2.0}


def draw_case(seed: int, kinds: Sequence[str] = KINDS) -> Fusion:
    """The fusion of that seed among those kinds, the same on every machine."""
    rng = random.Random(f"case {seed}")
    (kind,) = rng.choices(list(kinds), [_SHARES.get(kind, 1.0) for kind in kinds])
    if kind == "loop":
        unrolled = rng.random() < 1 / 20
        return Drawing(rng, unrolled).fusion(seed)
    drawing = HeroDrawing(rng, unrolled=False)
    roots = HEROES[kind](drawing)
    return drawing.finished(seed, kind, roots)
