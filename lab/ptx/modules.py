"""The PTX of XLA's optimized modules, launched through the stand-in for CuPy, against JAX's values."""

from collections.abc import Iterator

from runtime.modules import SETTINGS, recipes
from unit.runtime.fake_gpu import fake_cupy

from lab.ptx.rows import Row
from xla_emitters.errors import XlaEmittersError
from xla_emitters.pipelines.compiler import compile


def rows(every: int, first: int) -> Iterator[Row]:
    for name in [(name, setting) for name in recipes() for setting in SETTINGS][first::every]:
        yield row(*name)


def row(name: str, setting: str) -> Row:
    recipe, label = recipes()[name], f"{name + setting:36}"
    with fake_cupy() as cupy:
        try:
            program = compile(recipe.text(setting).read_text(), target="sm_90", cache=False, record="none")
            results = program.on("gpu")(*recipe.arrays())
            wrong = recipe.differs([results] if len(program.results) == 1 else results, program.results)
        except XlaEmittersError as error:
            return Row(f"{label} {error.message}", False, ("refused",))
        except Exception as error:  # a bug, which is shown in its row
            return Row(f"{label} {type(error).__name__}: {error}", False, ("failed",))
        launched = f"{len(program.kernels):3} kernels, {len(cupy.launches):4} launches"
    return Row(f"{label} {launched}  {'; '.join(wrong) or 'ok'}", not wrong, ("wrong" if wrong else "right",))
