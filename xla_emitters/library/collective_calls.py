"""Collectives: what each member of a group gets of the arrays of all members.

    all_reduce        the members' arrays combined, in the group's order, each step rounded to the element type
    reduce_scatter    the same, and of it the member's piece along a dimension
    all_gather        the members' arrays, one after the other along a dimension
    all_to_all        along a dimension: piece i of each member; of a list of arrays: number i of each
    ragged_all_to_all rows, as many as each member sends, at the place that the sender says
    broadcast         the first member's arrays
    permute           the arrays of the member that sends; zeros without one. Of slices: they replace parts of the receiver's arrays
    send, receive     arrays of one device to another; a device that sends nothing goes on, one that receives nothing has zeros
    wait              nothing: the place in the program from which on a collective that started before is done
    device_id         the number of a replica, or of a partition

A configuration has `groups`: lists of devices, each replica * partitions + partition; a device is in one of them. Which devices an op of
HLO means by its groups: `dialects/hlo/collectives`. XLA does not promise an order of combination.
Source: XLA's operation semantics; xla/service/collective_ops_utils.h.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from xla_emitters.errors import DataError, InternalError, Unsupported
from xla_emitters.library.arguments import Array, LibraryArguments, narrowed, widened
from xla_emitters.library.devices import Shares, current_device


def _group_of(arguments: LibraryArguments) -> tuple[int, ...]:
    """The group that this device is in; where each device is alone, the first."""
    name, groups = arguments.config["instruction"], [tuple(group) for group in arguments.config["groups"]]
    if all(len(group) == 1 for group in groups):
        return groups[0]
    number = current_device(name).number
    group = next((group for group in groups if number in group), None)
    if group is None:
        raise DataError(f"%{name}: device {number} is in none of its groups", stage="run")
    return group


def _met(
    arguments: LibraryArguments, among: Callable[[Shares], Shares], group: tuple[int, ...] | None = None
) -> list[Array]:
    """`among` applied to the arrays of the group of this device."""
    name, group, xp = arguments.config["instruction"], group or _group_of(arguments), arguments.xp
    operands = [xp.asarray(operand) for operand in arguments.operands]
    if len(group) == 1:
        (found,) = among([operands])
        return [array.copy() for array in found]
    device = current_device(name)
    return device.exchange.meet(device.number, name, group, operands, among)


def _met_by_pairs(arguments: LibraryArguments, among: Callable[[Sequence[int], Shares], Shares]) -> list[Array]:
    """The same for a permute: those meet that its pairs connect, whatever its groups are; `among` gets them too."""
    whole = _group_of(arguments)
    group = [current_device(arguments.config["instruction"]).number] if len(whole) > 1 else [*whole]
    pairs: Sequence[Sequence[int]] = arguments.config["pairs"]
    for device in group:
        group += {other for pair in pairs if device in pair for other in pair}.difference(group)
    met = tuple(sorted(group))
    return _met(arguments, partial(among, met), met)


_ON_GPU: Mapping[str, str] = {
    **{name: name for name in ("add", "multiply", "maximum", "minimum")},
    **{name: f"bitwise_{name}" for name in ("and", "or", "xor")},
}
"""HLO's opcode -> CuPy's function."""


def _combined(arguments: LibraryArguments, number: int, arrays: Sequence[Array]) -> Array:
    """The members' arrays, of the operand with that number, as one; each step is rounded to the element type."""
    if arguments.on_gpu:
        return _combined_on_gpu(arguments, number, arrays)
    combine = arguments.on_elements
    if combine is None:
        raise InternalError("a collective that combines needs an evaluator of computations", stage="library")
    total = arrays[0]
    for array in arrays[1:]:
        total = np.asarray(combine(arguments.config["computation"], [total, array]))
    return total


def _combined_on_gpu(arguments: LibraryArguments, number: int, arrays: Sequence[Array]) -> Array:
    xp, reduction, element = arguments.xp, arguments.config["reduction"], arguments.types[number]
    if reduction not in _ON_GPU:
        raise Unsupported(
            f"%{arguments.config['instruction']} combines by a computation of its own; GPUs by {', '.join(_ON_GPU)}",
            stage="library",
            help="--comm mpi, on CPUs",
        )
    combine, total = getattr(xp, _ON_GPU[reduction]), arrays[0]
    for array in arrays[1:]:
        total = narrowed(combine(widened(total, element, xp), widened(array, element, xp)), element, xp)
    return total


def _reduced(arguments: LibraryArguments, shares: Shares) -> list[Array]:
    return [_combined(arguments, number, of_all) for number, of_all in enumerate(zip(*shares, strict=True))]


def all_reduce(arguments: LibraryArguments) -> list[Array]:
    group, config = _group_of(arguments), arguments.config
    if len(group) > 1:
        exchange = current_device(config["instruction"]).exchange
        operands = [arguments.xp.asarray(operand) for operand in arguments.operands]
        if (found := exchange.all_reduce(group, operands, config.get("reduction"), arguments.types)) is not None:
            return found
    return _met(arguments, lambda shares: [_reduced(arguments, shares)] * len(shares))


def _pieces(array: Array, count: int, axis: int) -> list[Array]:
    size = array.shape[axis] // count
    return [array[(*(slice(None),) * axis, slice(i * size, (i + 1) * size))] for i in range(count)]


def reduce_scatter(arguments: LibraryArguments) -> list[Array]:
    axis = arguments.config["dimension"]

    def among(shares: Shares) -> Shares:
        pieces = [_pieces(total, len(shares), axis) for total in _reduced(arguments, shares)]
        return [[of_array[member] for of_array in pieces] for member in range(len(shares))]

    return _met(arguments, among)


def all_gather(arguments: LibraryArguments) -> list[Array]:
    axis, xp = arguments.config["dimension"], arguments.xp

    def among(shares: Shares) -> Shares:
        return [[xp.concatenate(of_all, axis) for of_all in zip(*shares, strict=True)]] * len(shares)

    return _met(arguments, among)


def all_to_all(arguments: LibraryArguments) -> list[Array]:
    axis, xp = arguments.config["dimension"], arguments.xp

    def among(shares: Shares) -> Shares:
        if axis is None:
            return [[share[member] for share in shares] for member in range(len(shares))]
        pieces = [_pieces(share[0], len(shares), axis) for share in shares]
        return [[xp.concatenate([of_one[member] for of_one in pieces], axis)] for member in range(len(shares))]

    return _met(arguments, among)


def ragged_all_to_all(arguments: LibraryArguments) -> list[Array]:
    """Operands: rows to send, rows as they are before, then for each receiver: first row here, number of rows, first row there, and
    how many rows come from each."""

    name, group = arguments.config["instruction"], _group_of(arguments)

    def among(shares: Shares) -> Shares:
        results, members = [share[1].copy() for share in shares], len(shares)
        for sender, (rows, _, starts, sizes, places, _) in enumerate(shares):
            each, more = divmod(len(starts), members)
            if more:
                raise DataError(
                    f"%{name}: {len(starts)} updates are not as many for each of {members} devices", stage="run"
                )
            for update, (start, size, place) in enumerate(zip(starts, sizes, places, strict=True)):
                receiver, first, count, there = update // each, int(start), int(size), int(place)
                target, expected = results[receiver], int(shares[receiver][5][sender * each + update % each])
                said = (
                    f"%{name}: device {group[sender]} sends rows {first} to {first + count} to device {group[receiver]}"
                )
                if min(first, count) < 0 or first + count > len(rows):
                    raise DataError(f"{said}, but has {len(rows)}", stage="run")
                if there < 0 or there + count > len(target):
                    raise DataError(f"{said}, at row {there} of {len(target)}", stage="run")
                if count != expected:
                    raise DataError(f"{said}, which expects {expected} rows", stage="run")
                target[there : there + count] = rows[first : first + count]
        return [[result] for result in results]

    return _met(arguments, among)


def broadcast(arguments: LibraryArguments) -> list[Array]:
    return _met(arguments, lambda shares: [shares[0]] * len(shares))


def permute(arguments: LibraryArguments) -> list[Array]:
    """`pairs` of the configuration are (sender, receiver); `slices`: see `dialects/hlo/permuted_slices`."""
    if "slices" in arguments.config:
        return _permute_slices(arguments)
    sender = {receiver: sender for sender, receiver in arguments.config["pairs"]}
    if all(sender.get(device) == device for group in arguments.config["groups"] for device in group):
        return [operand.copy() for operand in arguments.operands]

    def among(group: Sequence[int], shares: Shares) -> Shares:
        of_device = dict(zip(group, shares, strict=True))
        empty = [arguments.xp.zeros_like(array) for array in shares[0]]
        return [of_device[sender[device]] if device in sender else empty for device in group]

    return _met_by_pairs(arguments, among)


def _permute_slices(arguments: LibraryArguments) -> list[Array]:
    """Operands: arrays, arrays that are results but for the slices, starts in the former, starts in the latter."""
    config, slices = arguments.config, arguments.config["slices"]
    count, ranks = len(slices), [len(of_array[0]) for of_array in slices]

    def window(share: list[Array], where: int, array: int, number: int) -> tuple[slice, ...]:
        """Of slice `number` of an array: where 0, in what is sent; 1, in the result."""
        rank, sizes, shape = ranks[array], slices[array][number], share[where * count + array].shape
        before = len(slices[0]) * (where * sum(ranks) + sum(ranks[:array])) + number * rank
        starts = share[2 * count + before :][:rank]
        inside = [min(max(int(start), 0), dim - size) for start, dim, size in zip(starts, shape, sizes, strict=True)]
        return tuple(slice(start, start + size) for start, size in zip(inside, sizes, strict=True))

    def among(group: Sequence[int], shares: Shares) -> Shares:
        of_device = dict(zip(group, shares, strict=True))
        results = {device: [array.copy() for array in share[count : 2 * count]] for device, share in of_device.items()}
        sent, received = Counter[int](), Counter[int]()
        for sender, receiver in config["pairs"]:
            for array in range(count if sender in of_device else 0):
                source = window(of_device[sender], 0, array, sent[sender])
                target = window(of_device[receiver], 1, array, received[receiver])
                part = of_device[sender][array][source]
                if part.shape != results[receiver][array][target].shape:
                    raise DataError(
                        f"%{config['instruction']}: device {sender} sends {list(part.shape)} to another shape",
                        stage="run",
                    )
                results[receiver][array][target] = part
            sent[sender] += 1
            received[receiver] += 1
        return [results[device] for device in group]

    return _met_by_pairs(arguments, among)


def send(arguments: LibraryArguments) -> list[Array]:
    """The operand to the device that `pairs` has for this one. Results: the operand, and a number that means nothing."""
    name, receiver = arguments.config["instruction"], dict(arguments.config["pairs"])
    device = current_device(name)
    operand = arguments.operands[0]
    if (to := receiver.get(device.number)) is not None:
        device.exchange.send(device.number, to, arguments.config["channel"], [operand.copy()])
    return [operand, arguments.zeros(1)]


def receive(arguments: LibraryArguments) -> list[Array]:
    """What the device that `pairs` has for this one sends; operands are not read."""
    name, sender = arguments.config["instruction"], {to: source for source, to in arguments.config["pairs"]}
    device, ((_, shape),) = current_device(name), arguments.results
    if (source := sender.get(device.number)) is None:
        return [arguments.zeros(0)]
    like = [arguments.operands[0]]
    (found,) = device.exchange.receive(device.number, source, arguments.config["channel"], like)
    if found.shape != tuple(shape):
        raise DataError(
            f"%{name}: device {source} sends {list(found.shape)}, device {device.number} expects {list(shape)}",
            stage="run",
        )
    return [found]


def wait(arguments: LibraryArguments) -> list[Array]:
    """On a platform that does a collective at its start."""
    return []


def device_id(arguments: LibraryArguments) -> list[Array]:
    """`of` of the configuration is "replica" or "partition"; `replicas` and `partitions` are how many there are."""
    config = arguments.config
    if config[f"{config['of']}s"] == 1:
        return [arguments.xp.asarray(0, np.uint32)]
    replica, partition = divmod(current_device(config["instruction"]).number, config["partitions"])
    return [arguments.xp.asarray(replica if config["of"] == "replica" else partition, np.uint32)]
