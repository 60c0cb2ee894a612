"""Whether numbers are right: the NumPy reference with its bounds, what a comparison with it found, and which passes may change bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType

from xla_emitters.dialects.hlo.computation import ComputationOp
from xla_emitters.dialects.xla_gpu import LoopOp
from xla_emitters.dtypes import Array
from xla_emitters.errors import NumbersDiffer
from xla_emitters.explore.listing import LeftOut
from xla_emitters.graph.control_computations import drawn_for
from xla_emitters.graph.entry import entry_of
from xla_emitters.graph.plan import ProgramPlan
from xla_emitters.graph.row_chains import row_chains
from xla_emitters.pipelines.compiler import plan_module, source_of
from xla_emitters.pipelines.options import CompileOptions
from xla_emitters.program import Compiled, Program
from xla_emitters.runtime.arrays import differing
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.runtime.reference.reference_bounds import evaluate_bounds
from xla_emitters.runtime.reference.reference_elements import evaluate_elements
from xla_emitters.runtime.reference.tolerance import Bounds


@dataclass(frozen=True)
class Tolerance:
    """Allows a pass to change bits.

    reason   why
    applies  whether it may in this kernel, given the IR after the pass
    """

    reason: str
    applies: Callable[[ModuleOp], bool] = lambda module: True


def depends_on_iteration_order(module: ModuleOp) -> bool:
    """Whether a reordering of the iterations of a loop can change what it computes.

    Peeling runs the last iterations of an inner variable after all others of the outer ones, so a loop over one variable keeps its order.
    Nor does order matter to a loop that carries only tensors: each of their elements is written in one iteration, or updated in the
    iterations of one value of the inner variables. Sums and other combined values are carried as scalars and vectors.
    """
    loops = (op for op in module.walk() if isinstance(op, LoopOp) and len(op.map.range_vars) > 1)
    return any(not isinstance(result_type, TensorType) for loop in loops for result_type in loop.result_types)


# Passes that may change bits; all other consecutive stages are bit-identical.
TOLERANT = {
    "convert-complex-to-standard": Tolerance(
        "complex quotients and functions are written out in their own type: 16 ulp of the modulus each"
    ),
    "xla-gpu-peel-loops": Tolerance(
        "a reduction over several variables combines the elements of a variable's last iteration after all others",
        depends_on_iteration_order,
    ),
    "disc-algebraic-simplifier": Tolerance(
        "a division by a constant becomes a product with its rounded reciprocal, a small power becomes products: 1 ulp a step"
    ),
    "disc-lhlo-legalize-to-loop": Tolerance("a schedule adds in another order than NumPy"),
    "xla-expand-float-ops": Tolerance("f32 tanh and erf become polynomials: 6 ulp each"),
    "xla-split-reductions": Tolerance("a long sum is added in parts"),
}


@dataclass(frozen=True)
class Verdict:
    """Whether numbers are right, in one line and, if not, in several.

    ok       all compared elements are admissible
    summary  one line for a table
    details  which elements are wrong, and by how much
    name     of the kernel; "": the whole program
    kernels  for a program of several kernels, the verdict of each
    program  what was compiled, up to the last stage that was checked; None if nothing was
    left_out what was not compiled, if the module could not be compiled completely
    """

    ok: bool
    summary: str
    details: tuple[str, ...] = ()
    name: str = ""
    kernels: tuple[Verdict, ...] = ()
    program: Program | None = None
    left_out: tuple[LeftOut, ...] = ()

    def raise_if_different(self) -> None:
        """raises NumbersDiffer unless `ok`."""
        if not self.ok:
            raise NumbersDiffer(self.summary, stage="check", details=self.details)


FEW = 4
"""One element in so many, or fewer, is computed alone."""


@dataclass
class Reference:
    """What the HLO computes on some inputs, on demand: exact values, and the bounds of what a kernel may return.

    known      the values, where they are known
    bounds_of_ops  makes the bounds from the tolerances of the ops; by default from the computation, for sums in the order of XLA's kernel
    """

    computation: ComputationOp
    inputs: Sequence[Array]
    atol: float | None = None
    rtol: float | None = None
    known: Sequence[Array] = ()
    bounds_of_ops: Callable[[], list[Bounds]] | None = None
    _bounds: list[Bounds] | None = None

    @cached_property
    def values(self) -> list[Array]:
        """All elements of all results."""
        return list(self.known) or evaluate(self.computation, self.inputs)

    def elements(self, wanted: Sequence[Array]) -> list[Array]:
        """Of each result the elements where its mask holds; if few are wanted and nothing else is known, no others are computed."""
        is_known = self.known or "values" in self.__dict__
        is_few = sum(map(np.count_nonzero, wanted)) * FEW < sum(mask.size for mask in wanted)
        found = evaluate_elements(self.computation, self.inputs, wanted) if is_few and not is_known else None
        return found or [value[mask] for value, mask in zip(self.values, wanted, strict=True)]

    @property
    def bounds(self) -> list[Bounds]:
        """Per result: from the tolerances of the ops, or from `atol` and `rtol` if they are given."""
        # No cached_property: in Python 3.11 it computes under one lock for all instances, and the bounds of devices wait for each other.
        if self._bounds is None:
            self._bounds = self._made_bounds()
        return self._bounds

    def _made_bounds(self) -> list[Bounds]:
        if self.atol is None and self.rtol is None:
            return self.bounds_of_ops() if self.bounds_of_ops else evaluate_bounds(self.computation, self.inputs)
        return [self._around(value) for value in self.values]

    def _around(self, value: Array) -> Bounds:
        if value.dtype.kind in "biu" or "int" in value.dtype.name:
            return Bounds(value, value)
        wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
        slack = (self.atol or 0.0) + (self.rtol or 0.0) * np.abs(wide)
        if value.dtype.kind == "c":
            slack = slack * (1 + 1j)
        return Bounds((wide - slack).astype(value.dtype), (wide + slack).astype(value.dtype))

    def compare(
        self,
        results: Sequence[Array],
        written: Sequence[Array] | None = None,
        names: Sequence[str] | None = None,
    ) -> Verdict:
        """Compares bit by bit first; elements that differ must be within the bounds.

        written  per result, which of its elements were computed; None: all
        names    names for messages; None: r0, r1, ... by number
        """
        exact = total = 0
        details: list[str] = []
        values = self.values if written is None else self.elements(written)
        if len(results) != len(values):
            return Verdict(False, f"gives {len(results)} results, not {len(values)}")
        for number, result in enumerate(results):
            name, wanted = names[number] if names else f"r{number}", (written or values)[number].shape
            if result.shape != wanted:
                details.append(f"{name} is of {list(result.shape)}, not of {list(wanted)}")
                continue
            if written is None:
                different = differing(result, values[number])
            else:
                part = written[number]
                different = np.zeros(result.shape, np.bool_)
                different[part] = differing(result[part], values[number])
            count = different.size if written is None else int(np.count_nonzero(written[number]))
            wrong = different & ~self.bounds[number].admits(result) if different.any() else different
            total += count
            exact += count - int(np.count_nonzero(different))
            if wrong.any():
                details += self._differences(name, number, result, wrong)
        if details:
            return Verdict(False, f"differs from the NumPy reference: {details[0]}", tuple(details))
        bounds = "the ops' bounds" if self.atol is None and self.rtol is None else "the given tolerance"
        how = "bit-identical to" if exact == total else f"({exact} bit-identical, all within {bounds}) equal to"
        return Verdict(True, f"{total} of {total} elements {how} the NumPy reference")

    def _differences(self, name: str, number: int, result: Array, wrong: Array) -> list[str]:
        positions = np.argwhere(wrong)[:5]
        lines = [f"{name}: {int(np.count_nonzero(wrong))} of {wrong.size} elements"]
        for position in positions:
            at = tuple(int(index) for index in position)
            low, high = self.bounds[number].low[at], self.bounds[number].high[at]
            wanted = f"{low}" if f"{low}" == f"{high}" else f"{low} to {high}"
            lines.append(f"{name}{list(at)} is {result[at]}, wanted {wanted}")
        return lines


def reference_for(
    module: ModuleOp,
    inputs: Sequence[Array],
    fusion: str | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    values: Sequence[Array] = (),
    options: CompileOptions | None = None,
    plan: ProgramPlan | None = None,
    tf32: bool = False,
) -> Reference:
    """The reference of ENTRY, or of the computation that the fusion instruction `fusion` calls.

    values   the results where they are known
    options  of the compilation, and `plan` its kernels: the bounds are for the order of their sums. None: for that of XLA's kernels
    tf32     as for `evaluate_bounds`: results of a GPU
    """
    computation = drawn_for(module, fusion)
    any_order = options is not None and options.tune == "price"
    chains = row_chains(kernel.view for kernel in plan.kernels) if plan is not None else dict[int | str, int]()
    bounds = partial(evaluate_bounds, computation, inputs, any_order=any_order, row_chains=chains, tf32=tf32)
    return Reference(computation, inputs, atol, rtol, list(values), bounds)


def reference_of(
    program: Program,
    inputs: Sequence[Array],
    atol: float | None = None,
    rtol: float | None = None,
    options: CompileOptions | None = None,
    tf32: bool = False,
) -> Reference:
    """The NumPy reference of what a program was compiled from, on arguments that fit.

    Of StableHLO it is that of the text as it was read; products are computed by the runtime's library.

    options  of the compilation of HLO, as for `reference_for`
    tf32     as for `reference_for`
    raises   Unsupported where the text leaves out the data of constants
    """
    program.refuse_left_out()
    if isinstance(program.compilation, Compiled):
        module = source_of(program)
        plan = plan_module(module, options) if options is not None else None
        return reference_for(module, inputs, program.fusion, atol, rtol, (), options, plan, tf32)
    # Imported here, so that HLO does not load the second system.
    from xla_emitters.dynamic.sizes import specialize
    from xla_emitters.pipelines.lowerings import lowerings_of
    from xla_emitters.runtime.ral.buffer_ops import value_of

    made = lowerings_of(program)
    entry = entry_of(made.source)
    arrays, sizes = made.checked_with_sizes(inputs)
    values = evaluate(entry, arrays, value_of=value_of)

    def bounds() -> list[Bounds]:
        static = entry_of(specialize(made.source, sizes, made.sizes))
        return evaluate_bounds(static, arrays, any_order=True, tf32=tf32)

    return Reference(entry, arrays, atol, rtol, values, bounds)


def may_change_bits(name: str, module: ModuleOp) -> bool:
    """Whether the pass `name` may have changed bits of the kernel, which is now `module`."""
    return name in TOLERANT and TOLERANT[name].applies(module)


def changed_results(found: Sequence[Array], before: Sequence[Array]) -> str:
    """How a pass changed the results, bit by bit; "" if it did not."""
    if len(found) != len(before):
        return f"{len(before)} results before, {len(found)} after"
    for number, (one, other) in enumerate(zip(found, before, strict=True)):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"r{number} is {other.dtype}{list(other.shape)} before, {one.dtype}{list(one.shape)} after"
        different = differing(one, other)
        if different.any():
            at = tuple(int(index) for index in np.argwhere(different)[0])
            count = int(np.count_nonzero(different))
            return f"{count} elements of r{number} change: r{number}{list(at)} is {other[at]} before, {one[at]} after"
    return ""
