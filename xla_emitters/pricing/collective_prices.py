"""The expected cost of a collective: the ring's bound by bytes, and its latency in steps.

    all_reduce of 64 MB among 8 h200      112 MB on the wire: 249 us at NVLink's 450 GB/s, 280 us at NCCL's share of it

    link       bytes a second that a GPU sends                                  steps of a ring
    NVLink     t4, a6000 PCIe 16, 32; a100 300; h100, h200 450; b200 900 GB/s   0.6 us each
    network    50 GB/s: one adapter of 400 Gb/s for each GPU                    2.7 us each

Groups inside a node of 8 use NVLink. A group in several nodes is bound by both, and by the network the less, the more of its members a
node has: each has an adapter. Source: NVIDIA's data sheets of T4, A6000, A100, H100, H200, B200 and of DGX H100 (eight adapters of
400 Gb/s); latencies of NCCL's src/graph/tuning.cc, protocol LL, ring.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xla_emitters.device import Device
from xla_emitters.pricing.call_prices import CallCost, Sized, bytes_moved
from xla_emitters.pricing.model import Assumption
from xla_emitters.program.communication import COLLECTIVES, members_of, sent_bytes

NODE = 8
"""GPUs that NVLink connects with each other."""
LINK_BYTES_PER_S = {"t4": 16e9, "a6000": 32e9, "a100": 300e9, "h100": 450e9, "h200": 450e9, "b200": 900e9}
"""That a GPU sends to its neighbours in the node: half of what data sheets give for both directions."""
NETWORK_BYTES_PER_S = 50e9
LINK_SHARE = Assumption(0.95, 0.8, 0.5)
"""The share of a link that a large collective reaches."""
BASE_S = Assumption(4e-6, 6.6e-6, 14e-6)
STEP_S = {"link": 0.6e-6, "network": 2.7e-6}


def price_collective(
    name: str,
    instruction: str,
    config: Mapping[str, Any],
    operands: Sequence[Sized],
    results: Sequence[Sized],
    device: Device,
) -> CallCost | None:
    """The cost of a collective; None for another call, and for one in which each device is alone. Parameters as `price_call`."""
    if name not in COLLECTIVES or (members := members_of(config)) < 2:
        return None
    given, made = bytes_moved(operands), bytes_moved(results)
    sent = sent_bytes(name, config, given, made)
    groups = [tuple(group) for group in config.get("groups", ())] or [tuple(pair) for pair in config["pairs"]]
    in_node = min(max(_shares(group)) for group in groups)
    is_in_node = all(len(_shares(group)) == 1 for group in groups)
    steps = (2 if name == "all_reduce" else 1) * (members - 1) if name not in ("collective_permute", "send") else 1
    link = LINK_BYTES_PER_S.get(device.name, LINK_BYTES_PER_S["h200"])
    bounds = {"link": sent / link / LINK_SHARE.expected}
    latency = steps * STEP_S["link"]
    by_network = sent / NETWORK_BYTES_PER_S
    if not is_in_node:
        bounds["network"] = by_network / in_node / LINK_SHARE.expected
        latency = steps * STEP_S["network"]
    bound = max(bounds, key=lambda each: bounds[each])
    time = BASE_S.expected + latency + bounds[bound]
    ideal = bounds[bound] * LINK_SHARE.expected
    return CallCost(
        name=name,
        instruction=instruction,
        target=device.name,
        factors="",
        operations=0,
        bytes_needed=given + made,
        multiprocessors=0,
        bounds={each: seconds * 1e6 for each, seconds in bounds.items()},
        bound=bound if bounds[bound] > BASE_S.expected + latency else "latency",
        time=time * 1e6,
        time_low=(BASE_S.low + ideal / LINK_SHARE.low) * 1e6,
        time_high=(BASE_S.high + 2 * latency + ideal / LINK_SHARE.high) * 1e6,
        is_lower_bound=False,
        bandwidth=(given + made) / device.bandwidth_bytes_per_s / time,
        compute=0.0,
        members=members,
        wire_bytes=sent,
        network_time=(BASE_S.expected + steps * STEP_S["network"] + by_network / LINK_SHARE.expected) * 1e6,
    )


def _shares(group: Sequence[int]) -> list[int]:
    """How many members of a group each node has."""
    nodes = [device // NODE for device in group]
    return [nodes.count(node) for node in sorted(set(nodes))]
