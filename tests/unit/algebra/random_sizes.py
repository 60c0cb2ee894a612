"""Random expressions over sizes as trees, and their values by Python's arithmetic."""

from xla_emitters.algebra.size import Size, ceildiv, floordiv, maximum, minimum, mod

NAMES = ("a", "b", "c")
CONSTANTS = (0, 1, -1, 2, 3, 4, -2, 6, 8, -5, 12)
BINARY = {
    "+": (lambda x, y: x + y, lambda x, y: x + y),
    "-": (lambda x, y: x - y, lambda x, y: x - y),
    "*": (lambda x, y: x * y, lambda x, y: x * y),
    "floordiv": (floordiv, lambda x, y: x // y),
    "mod": (mod, lambda x, y: x % y),
    "ceildiv": (ceildiv, lambda x, y: -(-x // y)),
    "max": (maximum, max),
    "min": (minimum, min),
}
KINDS = ("+", "+", "-", "*", "*", "floordiv", "floordiv", "mod", "mod", "ceildiv", "max", "min")


class Tape:
    """Choices read from bytes, the first option once they run out."""

    def __init__(self, data):
        self.bytes = iter(data)

    def choose(self, options):
        return options[next(self.bytes, 0) % len(options)]

    def tree(self, depth=3, names=NAMES, constants=CONSTANTS):
        """A name, a number, or (operation, left, right). A divisor is any tree, but not the constant 0."""
        if depth == 0 or self.choose(range(5)) == 0:
            return self.choose(names) if self.choose(range(3)) else self.choose(constants)
        kind = self.choose(KINDS)
        left = self.tree(depth - 1, names, constants)
        if kind in ("floordiv", "mod", "ceildiv") and self.choose(range(3)):
            return kind, left, self.choose([c for c in constants if c])
        return kind, left, self.tree(depth - 1, names, constants)


def build(tree):
    """The tree as a size; raises what the operators raise."""
    if isinstance(tree, str):
        return Size.symbol(tree)
    if isinstance(tree, int):
        return tree
    kind, left, right = tree
    return BINARY[kind][0](build(left), build(right))


def value(tree, values):
    """The tree in Python's integers. raises ZeroDivisionError"""
    if isinstance(tree, str):
        return values[tree]
    if isinstance(tree, int):
        return tree
    kind, left, right = tree
    return BINARY[kind][1](value(left, values), value(right, values))
