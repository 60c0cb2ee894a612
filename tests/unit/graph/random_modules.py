"""Random modules of kernels, loops and branches, small enough to run by the thousand: see `random_module`."""

from random import Random

ARRAY = "f32[4]"

COMPUTATIONS = """
negated {
  x = f32[4] parameter(0)
  ROOT n = f32[4] negate(x)
}
added {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT s = f32[4] add(x, y)
}
both {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  s = f32[4] subtract(x, y)
  d = f32[4] maximum(x, y)
  ROOT t = (f32[4], f32[4]) tuple(s, d)
}
updated {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  i = s32[] parameter(2)
  e = f32[1] slice(y), slice={[1:2]}
  ROOT u = f32[4] dynamic-update-slice(x, e, i)
}
next {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT n = s32[] add(i, one)
}
less {
  i = s32[] parameter(0)
  n = s32[] parameter(1)
  ROOT p = pred[] compare(i, n), direction=LT
}
odd {
  i = s32[] parameter(0)
  one = s32[] constant(1)
  zero = s32[] constant(0)
  r = s32[] and(i, one)
  ROOT p = pred[] compare(r, zero), direction=NE
}
few {
  ROOT n = s32[] constant(2)
}
"""


def random_module(seed: int) -> str:
    """HLO text: ENTRY takes two arrays f32[4] and a number s32[], and returns one to four arrays.

    Loops run twice; their bodies hand on, swap, repeat, update in place or replace what is in their state. Branches return parameters too.
    """
    return _Module(Random(seed)).text()


class _Module:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.computations: list[str] = []
        self.count = 0

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}.{self.count}"

    def text(self) -> str:
        lines = ["a = f32[4] parameter(0)", "b = f32[4] parameter(1)", "i = s32[] parameter(2)"]
        arrays = self.body(lines, ["a", "b"], "i", depth=2)
        chosen = [self.random.choice(arrays) for _ in range(self.random.randint(1, 4))]
        lines.append(f"ROOT r = ({', '.join([ARRAY] * len(chosen))}) tuple({', '.join(chosen)})")
        entry = "\n".join(f"  {line}" for line in lines)
        return f"HloModule random\n{COMPUTATIONS}\n{''.join(self.computations)}\nENTRY main {{\n{entry}\n}}\n"

    def body(self, lines: list[str], arrays: list[str], number: str, depth: int) -> list[str]:
        """Adds instructions to a control computation; returns the names of its arrays, the new ones last."""
        arrays = list(arrays)
        for _ in range(self.random.randint(1, 4)):
            kinds = ["negated", "added", "both", "updated", "updated"] + ["loop", "branch"] * (depth > 0)
            getattr(self, f"add_{self.random.choice(kinds)}")(lines, arrays, number, depth)
        return arrays

    def add_negated(self, lines: list[str], arrays: list[str], number: str, depth: int) -> None:
        self._fusion(lines, arrays, "negated", [self.random.choice(arrays)])

    def add_added(self, lines: list[str], arrays: list[str], number: str, depth: int) -> None:
        self._fusion(lines, arrays, "added", self.random.choices(arrays, k=2))

    def add_updated(self, lines: list[str], arrays: list[str], number: str, depth: int) -> None:
        self._fusion(lines, arrays, "updated", [*self.random.choices(arrays, k=2), number])

    def _fusion(self, lines: list[str], arrays: list[str], called: str, operands: list[str]) -> None:
        name = self.fresh(called)
        lines.append(f"{name} = {ARRAY} fusion({', '.join(operands)}), kind=kLoop, calls={called}")
        arrays.append(name)

    def add_both(self, lines: list[str], arrays: list[str], number: str, depth: int) -> None:
        name = self.fresh("both")
        operands = ", ".join(self.random.choices(arrays, k=2))
        lines.append(f"{name} = ({ARRAY}, {ARRAY}) fusion({operands}), kind=kLoop, calls=both")
        self._elements(lines, arrays, name, range(2))

    def _elements(self, lines: list[str], arrays: list[str], name: str, indices: range) -> None:
        for index in indices:
            element = self.fresh("element")
            lines.append(f"{element} = {ARRAY} get-tuple-element({name}), index={index}")
            arrays.append(element)

    def add_loop(self, lines: list[str], arrays: list[str], number: str, depth: int) -> None:
        """The state: the counter, its limit, some arrays."""
        count = self.random.randint(1, 3)
        state = f"(s32[], s32[], {', '.join([ARRAY] * count)})"
        condition, body, loop = self.fresh("condition"), self.fresh("body"), self.fresh("while")
        inside = [f"s = {state} parameter(0)"]
        inside += ["i = s32[] get-tuple-element(s), index=0", "n = s32[] get-tuple-element(s), index=1"]
        decide = [*inside, "ROOT p = pred[] fusion(i, n), kind=kLoop, calls=less"]
        inner = list[str]()
        self._elements(inside, inner, "s", range(2, 2 + count))
        made = self.body(inside, inner, "i", depth - 1)
        returned = self.random.choices([*inner, *made[-3:]], k=count)
        inside.append("next = s32[] fusion(i), kind=kLoop, calls=next")
        inside.append(f"ROOT r = {state} tuple(next, n, {', '.join(returned)})")
        for name, text in ((condition, decide), (body, inside)):
            self.computations.append(f"{name} {{\n" + "".join(f"  {line}\n" for line in text) + "}\n")
        start, limit, initial = self.fresh("start"), self.fresh("limit"), self.fresh("initial")
        lines.append(f"{start} = s32[] constant(0)")
        lines.append(f"{limit} = s32[] fusion(), kind=kLoop, calls=few")
        lines.append(f"{initial} = {state} tuple({start}, {limit}, {', '.join(self.random.choices(arrays, k=count))})")
        lines.append(f"{loop} = {state} while({initial}), condition={condition}, body={body}")
        self._elements(lines, arrays, loop, range(2, 2 + count))

    def add_branch(self, lines: list[str], arrays: list[str], number: str, depth: int) -> None:
        given, returned = f"({ARRAY}, {ARRAY}, s32[])", f"({ARRAY}, {ARRAY})"
        names = list[str]()
        for _ in range(2):
            inside, inner = [f"s = {given} parameter(0)"], list[str]()
            self._elements(inside, inner, "s", range(2))
            inside.append("i = s32[] get-tuple-element(s), index=2")
            made = self.body(inside, inner, "i", depth - 1)
            inside.append(f"ROOT r = {returned} tuple({', '.join(self.random.choices(made, k=2))})")
            names.append(self.fresh("branch"))
            self.computations.append(f"{names[-1]} {{\n" + "".join(f"  {line}\n" for line in inside) + "}\n")
        selector, operand, chosen = self.fresh("odd"), self.fresh("operand"), self.fresh("chosen")
        lines.append(f"{selector} = pred[] fusion({number}), kind=kLoop, calls=odd")
        lines.append(f"{operand} = {given} tuple({', '.join(self.random.choices(arrays, k=2))}, {number})")
        called = f"true_computation={names[0]}, false_computation={names[1]}"
        lines.append(f"{chosen} = {returned} conditional({selector}, {operand}, {operand}), {called}")
        self._elements(lines, arrays, chosen, range(2))
