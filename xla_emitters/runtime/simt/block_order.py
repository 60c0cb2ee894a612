"""The order in which the blocks of a function are numbered: each before its successors, loops together.

    loops_together(reachable(region))

Source: Bourdoncle, "Efficient chaotic iteration strategies with widenings" (1993), weak topological order.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region

from xla_emitters.dialects.verification import successors as successors_of


def loops_together(blocks: Sequence[Block]) -> list[Block]:
    """The blocks in an order in which each is before its successors, except along back edges, and a loop's blocks are contiguous.

    blocks   the blocks to order, the entry first; branches to others are ignored
    returns  after a loop's head its other blocks, ordered likewise, and only then what follows the loop. So lanes that leave
             a loop early wait until the last one has left. (Reverse post-order alone may put the exit before the body.)
    """
    inside = set(blocks)
    order: list[Block] = []
    for component in reversed(_components(blocks, inside)):
        head, *rest = component
        order.append(head)
        if rest:
            # Without the head, inner loops are components of their own; search from the head's successors.
            left = set(rest)
            starts = [block for block in successors_of(head) if block in left]
            order += loops_together(list(dict.fromkeys(starts + rest)))
    return order


def _components(blocks: Sequence[Block], inside: set[Block]) -> list[list[Block]]:
    """Strongly connected components (Tarjan 1972) of the blocks in `inside`, last first.

    The first block of each is the one that was reached first.
    """
    index: dict[Block, int] = {}
    low: dict[Block, int] = {}
    open_blocks: list[Block] = []
    is_open: set[Block] = set()
    components: list[list[Block]] = []
    # An explicit stack: a function may have more blocks than Python allows frames.
    path: list[tuple[Block, list[Block]]] = []

    def enter(block: Block) -> None:
        index[block] = low[block] = len(index)
        open_blocks.append(block)
        is_open.add(block)
        path.append((block, [successor for successor in successors_of(block) if successor in inside]))

    for start in blocks:
        if start not in index:
            enter(start)
        while path:
            block, successors = path[-1]
            if successors:
                successor = successors.pop()
                if successor not in index:
                    enter(successor)
                elif successor in is_open:
                    low[block] = min(low[block], index[successor])
                continue
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[block])
            if low[block] == index[block]:
                start_of_component = open_blocks.index(block)
                component = open_blocks[start_of_component:]
                del open_blocks[start_of_component:]
                is_open.difference_update(component)
                components.append(component)
    return components


def reachable(region: Region) -> list[Block]:
    """The blocks that can be reached from the first one, which comes first."""
    found = [region.blocks[0]]
    seen = set(found)
    for block in found:
        for successor in successors_of(block):
            if successor not in seen:
                seen.add(successor)
                found.append(successor)
    return found
