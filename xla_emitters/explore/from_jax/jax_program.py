"""JAX functions in: traced and lowered by JAX, optimized by the real XLA:GPU without a GPU, compiled by us.

    p = from_jax(f, x, {"w": w})      f -> jaxpr -> StableHLO for CUDA -> XLA's HLO passes, in a child process -> HLO text -> kernels
    p(x, {"w": w})                    takes and returns trees like f: lists, tuples, dictionaries, registered classes

    p = from_jax(f, x, dynamic=True, shapes=("b, s, 32",))      f -> StableHLO with symbolic sizes (jax.export) -> a program for any b and s

    p = from_jax(f, x, mesh={"x": 2, "y": 4}, in_shardings=P("x"))      f -> a module that XLA partitioned for eight GPUs -> kernels
    p(x)                              whole arrays in and out; on a CPU all devices in one process

The intermediate values of JAX are accepted too: `Traced`, `Lowered`, `Exported`, and a `Compiled` for a GPU, whose module XLA has optimized
already. JAX drops arguments that no result needs; a program drops them when it is called. Only this file imports jax, on first use.
Not covered: callbacks of Python (`jax_words` refuses them by the caller's line).
Source: JAX's documentation of ahead-of-time lowering (jax.stages), of jax.export, and of AbstractMesh, a mesh without devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, Unpack, cast

import numpy as np

from xla_emitters.device import DEFAULT_DEVICE
from xla_emitters.dtypes import dtype
from xla_emitters.errors import Unsupported, UsageError, XlaEmittersError
from xla_emitters.explore.from_jax.jax_mesh import mesh_of, placed, within
from xla_emitters.explore.from_jax.jax_words import (
    STAGE,
    refuse_callbacks,
    refuse_callbacks_in,
    refuse_keywords,
    shapes_error,
    tracing_error,
    tree_error,
    without_static,
)
from xla_emitters.explore.optimize import counts_of
from xla_emitters.explore.optimized_texts import dropped_round_trips, optimized
from xla_emitters.explore.real_xla import Flag
from xla_emitters.library.arguments import numpy_type
from xla_emitters.pipelines import compiler
from xla_emitters.pipelines.options import CompileKeywords, CompileOptions
from xla_emitters.pipelines.programs import compile_program
from xla_emitters.program import ArraySpec, Compiled, Program
from xla_emitters.program.compiled import OnArguments, is_on_gpu, platform_of
from xla_emitters.runtime.arrays import checked, host_array
from xla_emitters.runtime.device_arrays import whole_specs
from xla_emitters.runtime.dlpack import as_type
from xla_emitters.settings import read_settings
from xla_emitters.support.extras import installed
from xla_emitters.text.binary.jaxlib_process import whole_text
from xla_emitters.text.stablehlo import parse_stablehlo
from xla_emitters.trace import Remark, Step, Trace

PLATFORM = "cuda"
_LOWER = 'jax.jit(f).trace(x).lower(lowering_platforms=("cuda",))'


@dataclass(frozen=True, kw_only=True, repr=False)
class JaxProgram(Program):
    """A program that takes and returns trees, like the JAX function that it was made of.

    in_tree, out_tree  JAX's tree definitions of ((arguments), {keywords}) and of the result
    kept               indices of the flat arguments that are parameters of the program
    static             the static arguments: position -> the value that the program is for; a call may give them or leave them out
    """

    in_tree: Any
    out_tree: Any
    kept: tuple[int, ...]
    static: Mapping[int, Any] = field(default_factory=dict[int, Any], hash=False)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Runs the program where its arrays are: on the GPU if one of them is there, else on the CPU.

        arguments  NumPy, JAX or CuPy arrays and Python numbers
        returns    the function's tree: of JAX arrays if an argument is one, where they were computed; else of CuPy's from a GPU, of NumPy's
                   from a CPU
        raises     DataError for another tree, or for arrays that do not fit; ToolError on a GPU without CuPy
        """
        return self.on(platform_of(jax_package().tree.leaves((arguments, keywords))))(*arguments, **keywords)

    def on(self, platform: str) -> OnTrees:
        """As `Program.on`, on the function's arguments."""
        return OnTrees(super().on(platform), platform, self)

    def run_cpu(self, *inputs: Any, stage: str | None = None, **keywords: Any) -> Any:
        """Runs the IR of a stage on the CPU, on the function's arguments; returns a tree of NumPy arrays.

        raises like `Program.run_cpu`; DataError for another tree
        """
        leaves = self.inputs(_kept_leaves(self, inputs, keywords), on_host=True)
        results = super().run_cpu(*leaves, stage=stage)
        return jax_package().tree.unflatten(self.out_tree, [results] if len(self.results) == 1 else results)

    def inputs(self, leaves: Sequence[Any], *, on_host: bool) -> list[Any]:
        """The leaves as arrays that fit; raises DataError with the path of one that does not."""
        inputs: list[Any] = []
        is_checked = isinstance(self.compilation, Compiled)  # the guards of other programs check their arguments
        for number, (leaf, (spec, wanted)) in enumerate(zip(leaves, self._taken, strict=False)):
            if not on_host and is_on_gpu(leaf):
                inputs.append(leaf)
                continue
            array = leaf
            if type(leaf) is not np.ndarray or leaf.dtype != wanted:
                array = _host_array(leaf, spec.dtype, self._named(number))
            inputs.append(checked(array, spec, self._named(number)) if is_checked else array)
        return inputs

    @cached_property
    def _taken(self) -> list[tuple[ArraySpec, np.dtype[Any]]]:
        """The parameters, and NumPy's types of their elements."""
        return [(spec, dtype(spec.dtype).numpy) for spec in whole_specs(self)[: len(self.parameters)]]

    def _named(self, number: int) -> str:
        """A parameter in messages."""
        return f"argument {number} (p{number}, {self._paths[self.kept[number]]})"

    @cached_property
    def _paths(self) -> list[str]:
        """Where each flat argument is in a call."""
        return _paths(jax_package().tree.unflatten(self.in_tree, range(self.in_tree.num_leaves)))

    @cached_property
    def wanted(self) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """The tree of a call, with a star for each argument."""
        return jax_package().tree.unflatten(self.in_tree, ["*"] * self.in_tree.num_leaves)


@dataclass(frozen=True)
class OnTrees(OnArguments):
    """A program of JAX on one platform, as a function of the function's arguments."""

    program: JaxProgram

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """The function's tree: of JAX arrays if an argument is one and all are where this runs; else as `Program.on` returns them."""
        leaves = _kept_leaves(self.program, inputs, keywords)
        results = self.run(self.program.inputs(leaves, on_host=self.platform == "cpu"))
        jax = jax_package()
        if any(type(leaf) is not np.ndarray and isinstance(leaf, jax.Array) for leaf in leaves):
            results = [_of_jax(result, spec.dtype) for result, spec in zip(results, self.program.results, strict=True)]
        return jax.tree.unflatten(self.program.out_tree, results)


def from_jax(
    function: Callable[..., Any],
    *arguments: Any,
    flags: Mapping[str, Flag] | None = None,
    dynamic: bool = False,
    shapes: Any = None,
    constraints: Sequence[str] = (),
    devices: int | None = None,
    mesh: Any = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    cache: bool = True,
    **given: Unpack[CompileKeywords],
) -> JaxProgram:
    """Compiles what XLA:GPU makes of a JAX function for these arguments; no GPU is needed. With `dynamic`, a program for any sizes.

    function   a function that JAX can trace, or a jitted one, with its static and donated arguments
    arguments  arrays, numbers, `jax.ShapeDtypeStruct`s, and trees of these: only shapes and types are read
    flags      XLA's DebugOptions: {"xla_gpu_enable_triton_gemm": False}
    dynamic    whether the program keeps symbolic sizes: those of `ShapeDtypeStruct`s, and those in `shapes`
    shapes     the sizes of each argument, in the format of jax.export.symbolic_args_specs: ("b, s, 32", "32, 64"), "b, ..." for all
    constraints  on the symbols of `shapes`, in JAX's format: ("s >= 2",)
    devices    for how many GPUs XLA partitions the program; None: as many as the mesh has. They need not be there
    mesh       a Mesh or an AbstractMesh of JAX, or its axes: {"x": 2, "y": 4}. It is the function's mesh while it is traced
    in_shardings, out_shardings  as in jax.jit: trees of Shardings, or of PartitionSpecs on the mesh; None: XLA chooses
    given      as in `compile`: target, stage, record ...; `tune` is "auto" unless given
    raises     what `optimize` and `compile` raise; Unsupported for callbacks of Python; UsageError for an argument that must be static, and
               for `shapes` that do not fit; ToolError without the extra [jax]; other errors of tracing the function are JAX's own

    >>> import jax, numpy
    >>> p = from_jax(jax.nn.softmax, numpy.ones((12, 40), "float32"))
    >>> print(p.kernels[0].launch)
    1x1x1 blocks of 256x1x1 threads
    >>> p = from_jax(jax.nn.softmax, numpy.ones((12, 40), "float32"), dynamic=True, shapes=("b, s",))
    >>> p(numpy.ones((3, 7), "float32")).shape
    (3, 7)
    """
    if not callable(function):
        raise UsageError(f"from_jax takes a function, not {function!r}", stage=STAGE)
    refuse_keywords(given, (row.name for row in fields(CompileOptions)))
    over = None if mesh is None else mesh_of(jax_package(), mesh, devices)
    shardings = {
        name: placed(jax_package(), tree, over, name)
        for name, tree in (("in_shardings", in_shardings), ("out_shardings", out_shardings))
        if tree is not None
    }
    jitted: Any = jax_package().jit(function, **shardings) if shardings or not hasattr(function, "trace") else function
    name = getattr(jitted, "__name__", "the function")
    # JAX has no public name for the positions of static arguments.
    positions = getattr(getattr(jitted, "_jit_info", None), "static_argnums", ())
    static = {position: arguments[position] for position in positions if position < len(arguments)}
    if dynamic:
        if devices is not None or over is not None or shardings:
            raise UsageError("a program with unknown sizes is for one device", stage=STAGE)
        if flags:
            raise UsageError("flags are for XLA, which does not see a program with unknown sizes", stage=STAGE)
        specs = symbolic_specs(arguments, static, shapes, constraints)
        with _in_the_callers_words(name):
            refuse_callbacks(jitted.trace(*specs).jaxpr)
            exported = jax_export().export(jitted, platforms=[PLATFORM])(*specs)
        return replace(_compile_dynamic(exported, **given), static=static)
    if shapes is not None or constraints:
        raise UsageError("shapes and constraints are for dynamic=True", stage=STAGE)
    with _in_the_callers_words(name), within(jax_package(), over):
        traced = jitted.trace(*arguments)
        given.setdefault("tune", "auto")
        found = compile_stage(traced, flags=flags, devices=devices, cache=cache, **given)
    return replace(found, static=static)


@contextmanager
def _in_the_callers_words(name: str) -> Generator[None]:
    """Inside it a function is traced or lowered: what JAX says about static arguments and symbolic sizes becomes an error of ours."""
    try:
        yield
    except XlaEmittersError:
        raise
    except Exception as error:
        if (own := tracing_error(error, name)) is error:
            raise
        raise own from error


def is_stage(source: object) -> bool:
    """Whether `source` is a `Traced`, `Lowered`, `Compiled` or `Exported` of JAX. Does not import JAX."""
    return type(source).__module__.partition(".")[0] == "jax" and type(source).__name__ in _STAGES


def compile_stage(
    source: Any,
    *,
    flags: Mapping[str, Flag] | None = None,
    devices: int | None = None,
    cache: bool = True,
    **given: Unpack[CompileKeywords],
) -> JaxProgram:
    """Compiles a value that `is_stage` accepts; see `from_jax`. With symbolic sizes it becomes a program with unknown sizes.

    devices  that XLA partitions it for; None: as many as it says
    raises Unsupported for a function compiled or exported for another platform, UsageError for another number of devices than it says
    """
    if type(source).__name__ == "Exported" and _has_symbols(source.in_avals):
        if flags:
            raise UsageError("flags are for XLA, which does not see a program with unknown sizes", stage=STAGE)
        return _compile_dynamic(source, **given)
    found = _STAGES[type(source).__name__](source)
    text, remarks = found.text, list[Remark]()
    if found.is_optimized and flags:
        raise UsageError("XLA has optimized this module already: flags come too late", stage=STAGE)
    if not found.is_optimized:
        refuse_callbacks_in(text)
        target, said = given.get("target", DEFAULT_DEVICE), math.prod(counts_of(text))
        if devices is not None and said not in (1, devices):
            raise UsageError(f"the function is for {said} devices, not for {devices}", stage=STAGE)
        settings = given.get("settings") or read_settings()
        text = optimized(
            text, target, flags, devices=devices, name="<jax>", settings=settings, cache=cache, remark=remarks.append
        )
        remarks += dropped_round_trips(found.text, text)
    program = compiler.compile(text, cache=cache, **given)
    values = {row.name: getattr(program, row.name) for row in fields(Program)}
    if remarks and isinstance(program.compilation, Compiled):
        steps = [Step("xla", None, None, 0.0, {}, tuple(remarks)), *program.graph.steps]
        values["compilation"] = replace(program.compilation, graph=Trace(program.graph.name, steps))
    return JaxProgram(**values, in_tree=found.in_tree, out_tree=found.out_tree, kept=found.kept)


def _has_symbols(values: Sequence[Any]) -> bool:
    return not all(isinstance(extent, int) for value in values for extent in value.shape)


def symbolic_specs(
    arguments: Sequence[Any], static: Mapping[int, Any], shapes: Any, constraints: Sequence[str]
) -> list[Any]:
    """The arguments to export a function with: shapes and types with the symbolic sizes, and the values of static arguments."""
    jax = jax_package()
    dynamic = [argument for position, argument in enumerate(arguments) if position not in static]
    if shapes is not None:
        if isinstance(shapes, tuple | list) and len(listed := cast("Sequence[Any]", shapes)) == len(arguments):
            shapes = tuple([text for position, text in enumerate(listed) if position not in static])
        try:
            dynamic = jax_export().symbolic_args_specs(tuple(dynamic), shapes, constraints=constraints)
        except ValueError as error:
            raise shapes_error(error, shapes, len(dynamic)) from error
    elif not _has_symbols([leaf for leaf in jax.tree.leaves(dynamic) if hasattr(leaf, "shape")]):
        raise UsageError(
            "dynamic=True, but no argument has a symbolic size",
            stage=STAGE,
            help='shapes=("b, s, 32",) with one text for each argument, or jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, s"), dtype)',
        )
    left = iter(dynamic)
    return [static[position] if position in static else next(left) for position in range(len(arguments))]


def _compile_dynamic(exported: Any, **given: Unpack[CompileKeywords]) -> JaxProgram:
    """A program from a function that jax.export exported with symbolic sizes. raises Unsupported for several devices"""
    if exported.nr_devices > 1:
        raise Unsupported(
            f"a program with unknown sizes is for one device, not for {exported.nr_devices}",
            stage=STAGE,
            help="export it at known sizes: XLA partitions those",
        )
    program = compile_program(parse_stablehlo(exported.mlir_module(), "<jax>"), CompileOptions(**given))
    values = {row.name: getattr(program, row.name) for row in fields(Program)}
    kept = tuple(exported.module_kept_var_idx)
    return JaxProgram(**values, in_tree=exported.in_tree, out_tree=exported.out_tree, kept=kept)


def _of_jax(result: Any, name: str) -> Any:
    """A result as JAX's array of HLO's type `name`: without a copy where it is on a GPU, and DLPack has the type."""
    jax = jax_package()
    if isinstance(result, np.ndarray):
        return jax.numpy.asarray(result)
    found = jax.dlpack.from_dlpack(as_type(result, name))
    wanted = numpy_type(name)
    return found if found.dtype == wanted else found.astype(wanted)  # elements below eight bits have a byte each


def _kept_leaves(program: JaxProgram, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """The flat arguments that the program takes. raises DataError for another tree, or another value of a static argument"""
    name, wanted = program.name.removeprefix("jit_"), program.wanted
    given = without_static(name, arguments, program.static, len(wanted[0]))
    leaves, tree = jax_package().tree.flatten((tuple(given), dict(keywords)))
    if tree != program.in_tree:
        there, here = _paths(wanted), _paths((tuple(given), dict(keywords)))
        takes = ", ".join([*map(str, wanted[0]), *(f"{key}={value}" for key, value in wanted[1].items())])
        raise tree_error(name, there, here, takes.replace("'*'", "*") or "nothing")
    return [leaves[number] for number in program.kept]


def _paths(tree: Any) -> list[str]:
    """Where the leaves of ((arguments), {keywords}) are: `arguments[0]['a']`, `keywords['scale']`."""
    jax = jax_package()
    found = jax.tree.leaves_with_path(tree)
    return [f"{('arguments', 'keywords')[start.idx]}{jax.tree_util.keystr(tuple(path))}" for (start, *path), _ in found]


@dataclass(frozen=True)
class _Stage:
    """What is read from a value of JAX: its module as text, and how trees map to parameters and results."""

    text: str
    in_tree: Any
    out_tree: Any
    kept: tuple[int, ...]
    is_optimized: bool = False


def _of_traced(stage: Any) -> _Stage:
    refuse_callbacks(stage.jaxpr)
    with _in_the_callers_words(stage.fun_name):
        return _of_lowered(stage.lower(lowering_platforms=(PLATFORM,)))


def _of_lowered(stage: Any) -> _Stage:
    text: str = stage.as_text(debug_info=True)
    # JAX has no public name for the indices of the kept arguments.
    kept: set[int] = stage._lowering.compile_args["kept_var_idx"]
    return _Stage(text, stage.in_tree, stage.out_tree, tuple(sorted(kept)))


def _of_compiled(stage: Any) -> _Stage:
    jax = jax_package()
    devices = {device for sharding in jax.tree.leaves(stage.output_shardings) for device in sharding.device_set}
    if (platform := next((device.platform for device in devices), "")) not in ("gpu", PLATFORM):
        raise Unsupported(
            f"this was compiled for '{platform}': its module is what XLA made for that, not for a GPU",
            stage=STAGE,
            help=f"give {_LOWER}, or use from_jax(f, x)",
        )
    (module,) = stage.runtime_executable().hlo_modules()
    kept: set[int] = stage._executable._kept_var_idx
    return _Stage(whole_text(module), stage.in_tree, stage.out_tree, tuple(sorted(kept)), is_optimized=True)


def _of_exported(stage: Any) -> _Stage:
    if tuple(stage.platforms) != (PLATFORM,):
        raise Unsupported(
            f"this was exported for {', '.join(stage.platforms)}",
            stage=STAGE,
            help=f'jax.export.export(jax.jit(f), platforms=["{PLATFORM}"])(x)',
        )
    return _Stage(stage.mlir_module(), stage.in_tree, stage.out_tree, tuple(stage.module_kept_var_idx))


_STAGES: dict[str, Callable[[Any], _Stage]] = {
    "Traced": _of_traced,
    "Lowered": _of_lowered,
    "Compiled": _of_compiled,
    "Exported": _of_exported,
}


def _host_array(leaf: Any, element: str, what: str) -> np.ndarray[Any, Any]:
    """A leaf, `what` in messages, as a NumPy array, with the type that JAX would give it: numbers get the parameter's type, 64-bit elements
    become 32-bit if the parameter's are, and a random key becomes its bits."""
    wanted: np.dtype[Any] = dtype(element).numpy
    jax = jax_package()
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    # NumPy's view of a JAX array is read-only, and the executor needs writable buffers.
    array = np.array(leaf) if isinstance(leaf, jax.Array) else host_array(leaf, element, what)
    if array.dtype != wanted and jax.dtypes.canonicalize_dtype(array.dtype) == wanted:
        return array.astype(wanted)
    return array


@cache
def jax_package() -> ModuleType:
    """JAX. raises ToolError where it is not installed"""
    with installed("JAX", STAGE, extras="jax,ptxas"):
        return import_module("jax")


def jax_export() -> ModuleType:
    """JAX's module for exporting, which `import jax` leaves out. raises like `jax_package`"""
    jax_package()
    return import_module("jax.export")
