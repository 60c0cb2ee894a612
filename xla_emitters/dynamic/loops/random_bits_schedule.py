"""The schedule of random bits: counters of Philox or ThreeFry, in sequence on a CPU, so that LLVM can vectorize over them.

    lmhlo.rng_bit_generator %state -> %new, %bits
      parallel of one:                    %new = the state, its counter advanced
      parallel for each CHUNK counters:   for each counter: its words, which are the next elements of %bits
      parallel of one:                    the last elements, fewer than the words of a counter

On a GPU each counter is a thread's.

`library/random_bits` defines the words and their order, and computes the same bits. A state is two u64, for Philox also
three; other states are left to the runtime, as are elements that are not integers.
Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC 2011); StableHLO specification, "rng_bit_generator".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, i32, i64
from xdsl.ir import SSAValue

from xla_emitters.dialects.lmhlo import BufferOp, tensor_of
from xla_emitters.dialects.mlir import arith
from xla_emitters.dtypes import Kind, dtype_of
from xla_emitters.dynamic.buffers.index_code import Number
from xla_emitters.dynamic.loops.kernel_code import KernelCode
from xla_emitters.dynamic.loops.schedule import FusionLoops
from xla_emitters.library.random_bits import KEY_PARITY, MULTIPLIERS, ROTATIONS, WEYL

NAME = "loop"
CHUNK = 4096
"""Counters of one iteration, the unit that threads share."""
THREEFRY = "rng_three_fry"
WORDS = {True: 2, False: 4}
"""Words of a counter: ThreeFry, Philox."""
ROUNDS = 10
GROUPS = 5
"""Rounds of Philox; groups of four rounds of ThreeFry."""


def has_random_schedule(op: BufferOp) -> bool:
    """Whether the types of its state and its elements are supported here."""
    state, bits = (tensor_of(buffer.type) for buffer in op.outputs)
    element, words = dtype_of(bits.element_type), dtype_of(state.element_type)
    is_integer = element.kind in (Kind.SIGNED, Kind.UNSIGNED) and element.bits in (8, 16, 32, 64)
    is_known = state.get_shape() == (2,) or (state.get_shape() == (3,) and not _is_threefry(op))
    return is_integer and words.name == "u64" and is_known


def _is_threefry(op: BufferOp) -> bool:
    return op.properties["algorithm"] == StringAttr(THREEFRY)


def emit_random_bits(fusion: FusionLoops) -> None:
    """The loops of a fusion that is one generator."""
    (root,) = fusion.roots
    generator = _Generator(fusion, root)
    fusion.parallel(NAME, [1], [1], lambda code, _: generator.advance(code))
    if generator.is_split:
        if fusion.is_cpu:
            fusion.parallel(NAME, [1], [1], lambda code, _: generator.write_split(code))
        else:
            # At least as many as there are counters.
            fusion.parallel(NAME, [generator.count], [1], lambda code, ids: generator.write_counter(code, ids[0]))
        return
    host, per = fusion.numbers.code, generator.elements_of_counter
    whole = host.divide(generator.count, per)

    def write(code: KernelCode, state: _State, number: SSAValue) -> None:
        for place, value in enumerate(generator.values(code, state, number)):
            generator.store(code, value, code.index.add(code.index.multiply(number, per), place))

    def chunk(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        first = code.index.multiply(variables[0], CHUNK)
        last = code.index.minimum(code.index.add(first, CHUNK), whole)
        state = generator.state(code)
        with code.each(first, last) as (inner, number):
            write(inner, state, number)

    def counter(code: KernelCode, variables: Sequence[SSAValue]) -> None:
        write(code, generator.state(code), variables[0])

    def rest(code: KernelCode, _: Sequence[SSAValue]) -> None:
        values = generator.values(code, generator.state(code), code.index.value(whole))
        for place, value in enumerate(values):
            at = code.index.add(code.index.multiply(whole, per), place)
            with code.where(code.index.compare("slt", at, generator.count)) as inner:
                generator.store(inner, value, at)

    if fusion.is_cpu:
        fusion.parallel(NAME, [host.divide(host.add(whole, CHUNK - 1), CHUNK)], [1], chunk)
    else:
        fusion.parallel(NAME, [whole], [1], counter)
    if per > 1:
        fusion.parallel(NAME, [1], [1], rest)


@dataclass(frozen=True)
class _State:
    """Halves of the key, and the counter of the first words: low and high half of 128 bits."""

    key: tuple[SSAValue, SSAValue]
    low: SSAValue
    high: SSAValue


class _Generator:
    """One op's parameters.

    count                number of elements
    elements_of_counter  number of elements made from the words of one counter
    is_split             whether the two words of a counter are stored apart: ThreeFry with one-word elements
    """

    def __init__(self, fusion: FusionLoops, root: BufferOp) -> None:
        self._given, (self._new, self._bits) = root.inputs[0], root.outputs
        self._is_threefry = _is_threefry(root)
        self._sizes = fusion.numbers.sizes(self._bits)
        self.element = dtype_of(tensor_of(self._bits.type).element_type)
        self.count = fusion.numbers.count(self._bits)
        words = WORDS[self._is_threefry]
        self.elements_of_counter = words if self.element.bits <= 32 else words // 2
        self.is_split = self._is_threefry and self.element.bits <= 32

    # ----------------------------------------------------------------------------------------------------------- state

    def _word(self, code: KernelCode, number: int) -> SSAValue:
        return code.load(self._given, [code.index.value(number)])

    def state(self, code: KernelCode) -> _State:
        is_long = tensor_of(self._given.type).get_shape() == (3,)
        key = self._word(code, 0)
        return _State((_low(code, key), _high(code, key)), self._word(code, 1), self._word(code, 2 if is_long else 0))

    def advance(self, code: KernelCode) -> None:
        """Writes the new state."""
        if self.is_split:
            outer, size, inner = self._split(code)
            index = code.index
            used = index.multiply(index.multiply(outer, index.quotient(index.add(size, 1), 2)), inner)
        else:
            per = self.elements_of_counter
            used = code.index.quotient(code.index.add(self.count, per - 1), per)
        low = self._word(code, 1)
        taken = code.insert(arith.IndexCastOp(code.index.value(used), i64)).result
        words = [self._word(code, 0), code.insert(arith.AddiOp(low, taken)).result]
        if tensor_of(self._given.type).get_shape() == (3,):
            carry = code.insert(arith.CmpiOp(words[1], low, "ult")).result
            carried = code.insert(arith.ExtUIOp(carry, i64)).result
            words.append(code.insert(arith.AddiOp(self._word(code, 2), carried)).result)
        for number, word in enumerate(words):
            code.store(word, self._new, [code.index.value(number)])

    # ---------------------------------------------------------------------------------------------------------- values

    def values(self, code: KernelCode, state: _State, number: SSAValue) -> list[SSAValue]:
        """The elements of counter `number`, in order."""
        words = self._words(code, state, number)
        if self.element.bits <= 32:
            return words
        halves = [code.insert(arith.ExtUIOp(word, i64)).result for word in words]
        return [
            code.insert(arith.OrIOp(low, _shifted(code, high, 32, arith.ShLIOp))).result
            for low, high in zip(halves[::2], halves[1::2], strict=True)
        ]

    def store(self, code: KernelCode, value: SSAValue, place: Number) -> None:
        """Writes an element: the low bits of the value."""
        width = IntegerType(self.element.bits)
        if value.type != width:
            value = code.insert(arith.TruncIOp(value, width)).result
        code.store(value, self._bits, code.index.delinearize(code.index.value(place), self._sizes))

    def _words(self, code: KernelCode, state: _State, number: SSAValue) -> list[SSAValue]:
        counter = code.insert(arith.AddiOp(code.insert(arith.IndexCastOp(number, i64)).result, state.low)).result
        if self._is_threefry:
            return _threefry(code, (_low(code, counter), _high(code, counter)), state.key)
        carry = code.insert(arith.CmpiOp(counter, state.low, "ult")).result
        high = code.insert(arith.AddiOp(state.high, code.insert(arith.ExtUIOp(carry, i64)).result)).result
        counters = [half(code, word) for word in (counter, high) for half in (_low, _high)]
        return _philox(code, counters, state.key)

    # ----------------------------------------------------------------------------------------------------- split words

    def _split(self, code: KernelCode) -> tuple[Number, Number, Number]:
        """Elements before, along and behind the dimension along which first and second words alternate."""
        index, sizes = code.index, self._sizes or (1,)
        largest: Number = sizes[0]
        for size in sizes[1:]:
            largest = index.maximum(largest, size)

        def parts(along: int) -> tuple[Number, Number, Number]:
            before, behind = map(index.product, (sizes[:along], sizes[along + 1 :]))
            return before, sizes[along], behind

        def chosen(found: tuple[Number, ...], is_it: SSAValue, other: tuple[Number, ...]) -> tuple[Number, ...]:
            return tuple(index.select(is_it, a, b) for a, b in zip(found, other, strict=True))

        # First the largest dimension, from last to first; dimensions of even size, tested after, take precedence.
        best: tuple[Number, ...] = parts(len(sizes) - 1)
        for along in reversed(range(len(sizes) - 1)):
            best = chosen(parts(along), index.compare("eq", sizes[along], largest), best)
        for along in reversed(range(len(sizes))):
            best = chosen(parts(along), index.compare("eq", index.remainder(sizes[along], 2), 0), best)
        before, size, behind = best
        return before, size, behind

    def write_split(self, code: KernelCode) -> None:
        """Writes all elements if the words of a counter are adjacent along one dimension."""
        before, size, behind = self._split(code)
        state, half = self.state(code), code.index.quotient(code.index.add(size, 1), 2)

        def row(code: KernelCode, *, is_second: bool) -> Sequence[SSAValue]:
            with code.each(0, behind) as (inner, offset):
                words = self._words(inner, state, inner.index.value(inner.index.add(number, offset)))
                at = inner.index.add(inner.index.multiply(place, behind), offset)
                self.store(inner, words[0], at)
                if is_second:
                    self.store(inner, words[1], inner.index.add(at, behind))
            return ()

        with code.each(0, before) as (outer, first), outer.each(0, half) as (along, second):
            index = along.index
            number = index.multiply(index.add(index.multiply(first, half), second), behind)
            place = index.add(index.multiply(first, size), index.multiply(second, 2))
            has_second = index.compare("slt", index.add(index.multiply(second, 2), 1), size)
            along.branch(has_second, (), partial(row, is_second=True), partial(row, is_second=False))

    def write_counter(self, code: KernelCode, number: SSAValue) -> None:
        """Writes the elements of one counter, the first and the second word apart; nothing for a number beyond the last counter."""
        before, size, behind = self._split(code)
        index = code.index
        half = index.quotient(index.add(size, 1), 2)
        used = index.multiply(index.multiply(before, half), behind)
        with code.where(index.compare("slt", number, used)) as inner:
            index = inner.index
            pair, offset = index.quotient(number, behind), index.remainder(number, behind)
            first, second = index.quotient(pair, half), index.remainder(pair, half)
            place = index.add(index.multiply(first, size), index.multiply(second, 2))
            words = self._words(inner, self.state(inner), number)
            at = index.add(index.multiply(place, behind), offset)
            has_second = index.compare("slt", index.add(index.multiply(second, 2), 1), size)
            self.store(inner, words[0], at)
            with inner.where(has_second) as innermost:
                self.store(innermost, words[1], innermost.index.add(at, behind))


# ---------------------------------------------------------------------------------------------------------------- words


def _low(code: KernelCode, value: SSAValue) -> SSAValue:
    return code.insert(arith.TruncIOp(value, i32)).result


def _high(code: KernelCode, value: SSAValue) -> SSAValue:
    return _low(code, _shifted(code, value, 32, arith.ShRUIOp))


def _number(code: KernelCode, number: int, width: int) -> SSAValue:
    signed = number - (1 << width) if number >> (width - 1) else number
    return code.insert(arith.ConstantOp(IntegerAttr(signed, width))).result


def _shifted(code: KernelCode, value: SSAValue, by: int, op: type[arith.SignlessIntegerBinaryOperation]) -> SSAValue:
    return code.insert(op(value, _number(code, by, dtype_of(value.type).bits))).result


def _xor(code: KernelCode, *values: SSAValue) -> SSAValue:
    first, *others = values
    for other in others:
        first = code.insert(arith.XOrIOp(first, other)).result
    return first


def _add(code: KernelCode, a: SSAValue, b: SSAValue) -> SSAValue:
    return code.insert(arith.AddiOp(a, b)).result


def _threefry(code: KernelCode, counter: Sequence[SSAValue], key: Sequence[SSAValue]) -> list[SSAValue]:
    """The two words of a counter: 20 rounds, the key added after every fourth."""
    keys = [*key, _xor(code, *key, _number(code, KEY_PARITY, 32))]
    x, y = (_add(code, word, each) for word, each in zip(counter, key, strict=True))
    for group in range(GROUPS):
        for rotation in ROTATIONS[4 * (group % 2) :][:4]:
            x = _add(code, x, y)
            turned = code.insert(
                arith.OrIOp(_shifted(code, y, rotation, arith.ShLIOp), _shifted(code, y, 32 - rotation, arith.ShRUIOp))
            ).result
            y = _xor(code, turned, x)
        x = _add(code, x, keys[(group + 1) % 3])
        y = _add(code, y, _add(code, keys[(group + 2) % 3], _number(code, group + 1, 32)))
    return [x, y]


def _philox(code: KernelCode, counter: Sequence[SSAValue], key: Sequence[SSAValue]) -> list[SSAValue]:
    """The four words of a counter: 10 rounds."""
    words, keys = list(counter), list(key)
    for _ in range(ROUNDS):
        first, second = (
            code.insert(
                arith.MuliOp(code.insert(arith.ExtUIOp(words[2 * i], i64)).result, _number(code, MULTIPLIERS[i], 64))
            ).result
            for i in range(2)
        )
        words = [
            _xor(code, _high(code, second), words[1], keys[0]),
            _low(code, second),
            _xor(code, _high(code, first), words[3], keys[1]),
            _low(code, first),
        ]
        keys = [_add(code, each, _number(code, step, 32)) for each, step in zip(keys, WEYL, strict=True)]
    return words
