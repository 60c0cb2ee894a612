"""What a program's collectives move, and what runs beside them: from its steps alone.

    call all_reduce (s): 4 MB among 8        each device sends 7 MB around the ring
    kernel f                                 beside it
    call wait (s.done)                       from here on the program has the result

Bytes on the wire are those that each device sends, by the algorithm that needs the fewest: a ring, or whole arrays to their receivers.
Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xla_emitters.program.callees import LibraryCall
from xla_emitters.program.steps import Branch, Call, Launch, Loop, Step
from xla_emitters.support.units import bytes_text

WAIT = "wait"
COLLECTIVES = frozenset(
    (
        *("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ragged_all_to_all"),
        *("collective_broadcast", "collective_permute", "send"),
    )
)
"""Library functions that send something."""


@dataclass(frozen=True)
class Communication:
    """A collective of a program.

    number   of the call
    members  of its largest group
    sent     bytes that each device sends
    beside   what is launched or called before the program waits for it; () where it waits at once
    """

    number: int
    call: LibraryCall
    members: int
    sent: int
    beside: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data; see docs/json.md."""
        return {
            "name": self.call.instruction,
            "function": self.call.name,
            "members": self.members,
            "sent_bytes": self.sent,
            "beside": list(self.beside),
        }

    def __str__(self) -> str:
        beside = f"beside {', '.join(self.beside)}" if self.beside else "nothing beside it"
        return f"{self.call.name} ({self.call.instruction}): each of {self.members} sends {bytes_text(self.sent)}; {beside}"


def members_of(config: Mapping[str, Any]) -> int:
    """How many devices take part in a call: the size of the largest group; of a send two."""
    return max((len(group) for group in config.get("groups", ())), default=2)


def sent_bytes(name: str, config: Mapping[str, Any], operands: int, results: int) -> int:
    """Bytes that each device sends, at least.

    operands, results  bytes of all operands, and of all results

    >>> sent_bytes("all_reduce", {"groups": [[0, 1, 2, 3]]}, 4000, 4000)
    6000
    """
    members = members_of(config)
    others = members - 1
    match name:
        case "all_reduce":
            return 2 * others * operands // members
        case "all_gather":
            return others * results // members
        case "reduce_scatter" | "all_to_all":
            return others * operands // members
        case "ragged_all_to_all":  # operands and what they are written to have one size
            return others * operands // (2 * members)
        case "collective_broadcast" | "collective_permute" | "send":
            return config.get("sliced_bytes", operands) if others else 0
        case _:
            return 0


def communications(
    steps: Sequence[Step], calls: Sequence[LibraryCall], bytes_of: Mapping[int, tuple[int, int]]
) -> Iterator[Communication]:
    """The collectives of steps and of those inside them, in order.

    bytes_of  number of a call -> bytes of its operands, and of its results
    """
    for at, step in enumerate(steps):
        match step:
            case Call() if calls[step.op].name in COLLECTIVES:
                call = calls[step.op]
                members = members_of(call.config)
                if members > 1:
                    sent = sent_bytes(call.name, call.config, *bytes_of[step.op])
                    yield Communication(step.op, call, members, sent, tuple(_beside(step, steps[at + 1 :], calls)))
            case Loop():
                yield from communications((*step.condition, *step.body), calls, bytes_of)
            case Branch():
                for branch in step.branches:
                    yield from communications(branch, calls, bytes_of)
            case _:
                pass


def waits_for(wait: Call, start: Call) -> bool:
    """Whether a wait is for that collective: it reads what this writes."""
    return bool({place.slot for place in start.writes} & {place.slot for place in wait.reads})


def _beside(start: Call, later: Sequence[Step], calls: Sequence[LibraryCall]) -> list[str]:
    found = list[str]()
    for step in later:
        if isinstance(step, Call) and calls[step.op].name == WAIT:
            if waits_for(step, start):
                return found
        elif isinstance(step, Call | Loop | Branch):
            found.append(step.name)
        elif isinstance(step, Launch):
            found.append(step.kernel)
    return []
