"""All devices of a program in one process: one thread for each, one of which runs at a time.

    run_on_devices(range(4), lambda device: program(*inputs[device]))          [results of device 0, of device 1, ...]
    run_on_devices([0, 1], ...)                                         an error where one of them needs a device that is not run

A thread runs until it waits for others at a collective, or ends; then the next device that can go on does, in order of their numbers. So
a run has one order, whatever the machine does, and nothing is shared by two threads at a time. Where no device can go on, none ever will:
this is an error that says where each of them waits, not a wait without end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Generic, TypeVar

from xla_emitters.dtypes import Array
from xla_emitters.errors import ExecutionError, UsageError, XlaEmittersError
from xla_emitters.library.devices import Exchange, Participant, Shares, of_device

T = TypeVar("T")
MOST_DEVICES = 16
"""Devices that are run without being asked for: each has arrays of its own."""
_Key = tuple[str, tuple[int, ...]]
"""(instruction, group), or (channel, (source, receiver))."""


def run_on_devices(devices: Sequence[int], run: Callable[[int], T]) -> list[T]:
    """What `run` returns for each device, in order.

    raises  the first error of any device; ExecutionError where collectives do not meet
    """
    return _Devices(devices, run).results()


def ranks_named(text: str, count: int) -> list[int]:
    """The devices that `0,3-5` names, of `count`. raises UsageError for other text

    >>> ranks_named("3-5,0", 8)
    [0, 3, 4, 5]
    """
    found = set[int]()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or not (last.isdecimal() if dash else not last) or int(last or first) >= count:
            raise UsageError(
                f"--ranks {text}: numbers and ranges, of devices 0 to {count - 1}", stage="run", help="--ranks 0,3-5"
            )
        found.update(range(int(first), int(last or first) + 1))
    if not found:
        raise UsageError(f"--ranks {text} names no device", stage="run")
    return sorted(found)


def ranks_text(devices: Iterable[int]) -> str:
    """The same as text.

    >>> ranks_text([0, 3, 4, 5])
    '0,3-5'
    """
    runs = list[list[int]]()
    for device in sorted(devices):
        if runs and device == runs[-1][-1] + 1:
            runs[-1].append(device)
        else:
            runs.append([device])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def devices_wanted(needed: int, asked: int | None, stage: str) -> int:
    """How many devices a run has: as many as the program is for.

    raises  UsageError where another number was asked for, or none and there are more than MOST_DEVICES
    """
    if asked is not None and asked != needed:
        devices = "one device" if needed == 1 else f"{needed} devices"
        raise UsageError(f"the program is for {devices}, not for {asked}", stage=stage, help=f"--devices {needed}")
    if asked is None and needed > MOST_DEVICES:
        raise UsageError(
            f"the program is for {needed} devices: each has arrays of its own",
            stage=stage,
            help=f"--devices {needed}"
            + "; or run some of them, if they need no others: --ranks 0-7" * (stage == "run"),
        )
    return needed


@dataclass
class _Meeting:
    """Who has come to an instruction, with which arrays; `results` once all have."""

    arrays: dict[int, list[Array]] = field(default_factory=dict[int, "list[Array]"])
    results: dict[int, list[Array]] | None = None


class _Left(Exception):
    """Ends the thread of a device that can never go on."""


class _Devices(Exchange, Generic[T]):
    """The threads of a run, and what they exchange.

    devices  those that are run
    turn     the device that runs
    waiting  device -> where it waits, and for whom
    ended    devices that have ended
    """

    def __init__(self, devices: Sequence[int], run: Callable[[int], T]) -> None:
        self.devices, self._run = devices, run
        self._change = Condition()
        self.turn: int | None = devices[0]
        self.waiting = dict[int, tuple[str, Callable[[], list[int]]]]()
        self.ended = set[int]()
        self._open = dict[_Key, _Meeting]()
        self._sent = dict[_Key, deque[list[Array]]]()
        self._found = dict[int, T]()
        self._error: BaseException | None = None

    def results(self) -> list[T]:
        threads = [Thread(target=copy_context().run, args=(self._of, device), daemon=True) for device in self.devices]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return [self._found[device] for device in self.devices]

    def _of(self, device: int) -> None:
        """The thread of a device."""
        try:
            self._await_turn(device)
            with of_device(Participant(device, self)):
                self._found[device] = self._run(device)
        except _Left:
            pass
        except BaseException as error:  # is raised by `results`
            if isinstance(error, XlaEmittersError):
                error.message = f"device {device}: {error.message}"
            with self._change:
                self._error = self._error or error
        with self._change:
            self.ended.add(device)
            self._pass_on(device)

    def _await_turn(self, device: int) -> None:
        with self._change:
            self._change.wait_for(lambda: self.turn == device or self._error is not None)
            if self._error is not None:
                raise _Left

    def _pass_on(self, device: int) -> None:
        """The next device that can go on does. Without one, the run ends."""
        at = self.devices.index(device) + 1
        others = [*self.devices[at:], *self.devices[:at]]
        self.turn = next((other for other in others if other not in self.waiting and other not in self.ended), None)
        if self.turn is None and self.waiting and self._error is None:
            self._error = self._do_not_meet()
        self._change.notify_all()

    def _do_not_meet(self) -> ExecutionError:
        lines = [
            f"device {device} waits at %{name} for {_listed(missing())}"
            for device, (name, missing) in sorted(self.waiting.items())
        ]
        if self.ended:
            lines.append(f"{_listed(sorted(self.ended))} {'have' if len(self.ended) > 1 else 'has'} ended")
        return ExecutionError(f"collectives do not meet: {lines[0]}", stage="run", details=tuple(lines[1:]))

    def meet(
        self, device: int, name: str, group: tuple[int, ...], arrays: Sequence[Array], among: Callable[[Shares], Shares]
    ) -> list[Array]:
        """See `library.devices.Exchange`."""
        self._expect(name, group)
        key = name, group
        meeting = self._open.setdefault(key, _Meeting())
        meeting.arrays[device] = [array.copy() for array in arrays]  # the device may write over them once all have met
        if len(meeting.arrays) < len(group):
            self._wait(device, name, lambda: sorted(set(group) - meeting.arrays.keys()))
        else:
            shares = among([meeting.arrays[member] for member in group])
            meeting.results = dict(zip(group, shares, strict=True))
            del self._open[key]
            with self._change:
                for member in group:
                    self.waiting.pop(member, None)
        assert meeting.results is not None
        return [array.copy() for array in meeting.results[device]]

    def send(self, device: int, to: int, name: str, arrays: Sequence[Array]) -> None:
        """See `library.devices.Exchange`."""
        self._sent.setdefault((name, (device, to)), deque()).append([array.copy() for array in arrays])
        if self.waiting.get(to, ("", None))[0] == name:
            del self.waiting[to]

    def receive(self, device: int, source: int, name: str, like: Sequence[Array] = ()) -> list[Array]:
        """See `library.devices.Exchange`."""
        self._expect(name, (source, device))
        key = name, (source, device)
        while not self._sent.get(key):
            self._wait(device, name, lambda: [source])
        return self._sent[key].popleft()

    def _expect(self, name: str, group: Sequence[int]) -> None:
        """raises ExecutionError for a device that is not run"""
        if missing := set(group).difference(self.devices):
            word = "device" if len(missing) == 1 else "devices"
            raise ExecutionError(
                f"%{name} needs {word} {ranks_text(missing)}, not run here",
                stage="run",
                help=f"--ranks {ranks_text(missing.union(self.devices))}",
            )

    def _wait(self, device: int, name: str, missing: Callable[[], list[int]]) -> None:
        """Lets the others run until one of them ends the wait."""
        with self._change:
            self.waiting[device] = name, missing
            self._pass_on(device)
        self._await_turn(device)


def _listed(devices: Sequence[int]) -> str:
    return f"device{'s' if len(devices) > 1 else ''} {', '.join(map(str, devices))}"
