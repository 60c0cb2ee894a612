"""PyTorch modules as programs: what goes in and comes out, names of sizes, what is refused and where, and that PyTorch stays as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from xla_emitters.errors import DataError, ToolError, Unsupported, UsageError
from xla_emitters.explore.compile import compile
from xla_emitters.explore.from_torch.torch_program import TorchProgram, from_torch
from xla_emitters.explore.from_torch.torch_transforms import without_transforms
from xla_emitters.tools.main import main


@pytest.fixture(scope="module")
def torch() -> Any:
    for name in ("torch", "jax"):
        pytest.importorskip(name, reason="the extra [torch] is not installed")
    import torch

    torch.manual_seed(0)
    return torch


@pytest.fixture(scope="module")
def pair(torch: Any) -> tuple[Any, TorchProgram]:
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 3)).eval()
    batch = torch.export.Dim("batch")
    return module, from_torch(module, torch.ones(2, 4), dynamic_shapes=({0: batch},), record="none")


def test_without_pytorch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ToolError, match="PyTorch is not installed") as caught:
        from_torch(lambda x: x, 1)
    assert "[torch]" in (caught.value.help or "")


def test_any_size_once_compiled(torch: Any, pair: tuple[Any, TorchProgram]) -> None:
    module, program = pair
    assert program.symbols == ("batch",)
    assert program.names == ("input",)
    for size in (1, 3, 8):
        x = torch.randn(size, 4)
        torch.testing.assert_close(program(x), module(x).detach(), rtol=1e-5, atol=1e-6)


def test_the_answer_is_of_the_callers_family(torch: Any, pair: tuple[Any, TorchProgram]) -> None:
    module, program = pair
    x = torch.randn(3, 4, requires_grad=True)
    assert isinstance(program(x), torch.Tensor)
    found = program(x.detach().numpy())
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, module(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(program.on("cpu")(x).numpy(), found)
    np.testing.assert_allclose(program.run_cpu(x, stage="llvm-dialect").numpy(), found, rtol=1e-5, atol=1e-6)


def test_arrays_that_do_not_fit_are_named(torch: Any, pair: tuple[Any, TorchProgram]) -> None:
    _, program = pair
    with pytest.raises(DataError, match=r"argument 0 \(p0\) 'input': axis 1 is 5, expected 4"):
        program(torch.ones(2, 5))
    with pytest.raises(DataError, match=r"of another structure"):
        program(torch.ones(2, 4), torch.ones(2, 4))


@pytest.mark.parametrize(
    "name", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "bool", "int8", "int64", "float64"]
)
def test_every_type_keeps_its_bits(torch: Any, name: str) -> None:
    element = getattr(torch, name)
    x = torch.arange(6).reshape(2, 3).to(element)
    program = from_torch(lambda v: v.transpose(0, 1), x, dynamic_shapes=({0: torch.export.Dim("n")},), record="none")
    found = program(torch.cat([x.float(), x.float()]).to(element))
    assert found.dtype == element
    assert torch.equal(found.float(), torch.cat([x.float(), x.float()]).T)


def test_trees_keywords_and_what_is_no_tensor(torch: Any) -> None:
    class Module(torch.nn.Module):
        def forward(self, pair: dict[str, Any], scale: float, more: Any = None) -> Any:
            return {"sum": [pair["a"] * scale + pair["b"][0]], "more": more, "size": pair["a"].shape[0], "name": "x"}

    rows = torch.export.Dim("rows")
    given = {"a": torch.randn(2, 3), "b": (torch.randn(2, 3),)}
    program = from_torch(
        Module(),
        given,
        2.0,
        keywords={"more": torch.ones(2)},
        dynamic_shapes={"pair": {"a": {0: rows}, "b": ({0: rows},)}, "scale": None, "more": None},
        record="none",
    )
    given = {"a": torch.randn(5, 3), "b": (torch.randn(5, 3),)}
    found = program(given, 2.0, more=torch.ones(2))
    assert (found["size"], found["name"]) == (5, "x")
    torch.testing.assert_close(found["sum"][0], given["a"] * 2 + given["b"][0])
    with pytest.raises(DataError, match=r"is for 2\.0, and 3\.0 was given"):
        program(given, 3.0, more=torch.ones(2))


def test_parameters_as_arguments_are_those_of_the_call(torch: Any) -> None:
    module = torch.nn.Linear(4, 3)
    program = from_torch(module, torch.ones(2, 4), parameters="arguments", record="none")
    assert program.state == ("weight", "bias")
    x, state = torch.randn(2, 4), {name: value * 2 for name, value in module.state_dict().items()}
    wanted = torch.func.functional_call(module, state, (x,)).detach()
    torch.testing.assert_close(program(state, x), wanted)
    with pytest.raises(DataError, match="the state has no 'bias'"):
        program({"weight": state["weight"]}, x)
    with pytest.raises(DataError, match="takes its parameters first"):
        program(x)


def test_parameters_as_constants_are_in_a_file_that_is_named(torch: Any, tmp_path: Path) -> None:
    module = torch.nn.Linear(4, 3)
    file = tmp_path / "weights.npz"
    program = from_torch(module, torch.ones(2, 4), constants=str(file), record="none")
    with np.load(file) as archive:
        assert module.weight.detach().numpy().tobytes() in {archive[name].tobytes() for name in archive.files}
    torch.testing.assert_close(program(torch.ones(2, 4)), module(torch.ones(2, 4)).detach())


def test_sizes_that_are_made_of_a_dim(torch: Any) -> None:
    half = torch.export.Dim("half", min=3)
    program = from_torch(
        lambda x, y: x[:, ::2] + y,
        torch.ones(2, 8),
        torch.ones(2, 4),
        dynamic_shapes=({1: 2 * half}, {1: half}),
        record="none",
    )
    assert program.symbols == ("half",)
    x, y = torch.randn(2, 10), torch.randn(2, 5)
    torch.testing.assert_close(program(x, y), x[:, ::2] + y)
    with pytest.raises(DataError, match=r"half >= 3|p1_1 - 3 >= 0|half - 3"):
        program(torch.randn(2, 4), torch.randn(2, 2))


def test_an_exported_program_is_taken(torch: Any) -> None:
    exported = torch.export.export(torch.nn.ReLU(), (torch.ones(2, 4),), dynamic_shapes=({0: torch.export.Dim("b")},))
    x = torch.randn(5, 4)
    assert torch.equal(from_torch(exported, record="none")(x), x.relu())
    with pytest.raises(UsageError, match="has its arguments and sizes"):
        from_torch(exported, x)


# ----------------------------------------------------------------------------------------------------------------- refused


def test_what_is_refused_says_the_layer_and_the_line(torch: Any) -> None:
    class Inner(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.bernoulli(x)

    class Outer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = torch.nn.ModuleList([torch.nn.Identity(), Inner()])

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return x

    with pytest.raises(Unsupported, match=r"aten\.rand draws random numbers") as caught:
        from_torch(Outer(), torch.full((2, 3), 0.5))
    assert "in the layer 'blocks.1' (Inner)" in caught.value.details
    assert caught.value.place is not None
    assert caught.value.place.file == __file__
    assert "torch.bernoulli" in caught.value.place.text


def test_a_module_that_changes_its_buffers_is_refused(torch: Any) -> None:
    module = torch.nn.BatchNorm1d(3).train()
    with pytest.raises(Unsupported, match=r"the module changes .*: a program has no state") as caught:
        from_torch(module, torch.ones(2, 3))
    assert "eval()" in (caught.value.help or "")
    x = torch.randn(4, 3)
    torch.testing.assert_close(from_torch(module.eval(), x, record="none")(x), module(x).detach())


def test_what_torch_export_refuses_is_in_its_words(torch: Any) -> None:
    with pytest.raises(Unsupported, match=r"torch\.export refuses Linear: ") as caught:
        from_torch(torch.nn.Linear(4, 3), torch.ones(2, 4), dynamic_shapes=({1: torch.export.Dim("n")},))
    assert any("n = 4" in line for line in caught.value.details)


def test_a_condition_on_a_size_beside_a_transform_is_refused(torch: Any) -> None:
    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 2))

        def forward(self, x: Any) -> Any:
            def loss(parameters: Any) -> Any:
                return torch.func.functional_call(self.inner, parameters, (x,)).sum()

            found = torch.func.grad(loss)(dict(self.inner.named_parameters()))["0.weight"]
            return found if x.shape[0] > 3 else -found

    module = Module()
    n = torch.export.Dim("n")
    with pytest.raises(Unsupported, match=r"n = Dim\('n', min=4\)"):
        from_torch(module, torch.ones(5, 2), dynamic_shapes=({0: n},))
    with pytest.raises(Unsupported, match="asks whether"):
        without_transforms(torch, module, (torch.ones(5, 2),), {}, [[n, None]])
    x = torch.randn(5, 2)
    torch.testing.assert_close(from_torch(module, x, record="none")(x), module(x).detach())


def test_options_that_there_are_not(torch: Any) -> None:
    with pytest.raises(UsageError, match="no parameters='files'"):
        from_torch(torch.nn.ReLU(), torch.ones(2), parameters="files")
    with pytest.raises(UsageError, match="no option 'x'"):
        from_torch(torch.nn.ReLU(), x=torch.ones(2))  # pyright: ignore[reportCallIssue]
    with pytest.raises(UsageError, match="takes a module or a function"):
        from_torch(3)


def test_pytorch_and_the_modules_of_the_process_stay_as_they_are(torch: Any, pair: tuple[Any, TorchProgram]) -> None:
    assert not [name for name in sys.modules if name.partition(".")[0] == "torchax"]
    assert torch.backends.mha.get_fastpath_enabled()
    assert torch._C._get_privateuse1_backend_name() == "privateuseone"
    assert "__getattr__" not in vars(torch.ops.aten.prod)


# ------------------------------------------------------------------------------------------------------------------ models


@pytest.mark.parametrize("name", ["mlp", "mixture", "casts", "bag", "loss"])
def test_models_at_four_shapes(torch: Any, name: str) -> None:
    from lab.torch_models import measured

    row = measured(name)
    assert len(row.found) == 4
    assert row.is_right, row


def test_a_saved_export_is_a_file_for_verbs_and_compile(
    torch: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, file = torch.nn.Linear(4, 3), tmp_path / "linear.pt2"
    b = torch.export.Dim("b")
    torch.export.save(torch.export.export(module, (torch.ones(2, 4),), dynamic_shapes=({0: b},)), file)
    x = torch.randn(5, 4)
    torch.testing.assert_close(compile(file, record="none")(x), module(x).detach())
    np.savez(tmp_path / "in.npz", p0=x.numpy())
    assert main(["run", str(file), "--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz")]) == 0
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_allclose(found["r0"], module(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    capsys.readouterr()
    with ZipFile(file) as whole, ZipFile(tmp_path / "damaged.pt2", "w") as damaged:
        for name in whole.namelist():
            damaged.writestr(name, whole.read(name)[:5] if name.endswith("model.json") else whole.read(name))
    assert main(["list", str(tmp_path / "damaged.pt2")]) == 1
    assert "PyTorch does not read" in capsys.readouterr().err


def test_kernels_say_the_lines_of_the_module(torch: Any) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.exp() + 1

    program = from_torch(Module(), torch.ones(2, 4))
    assert Path(__file__).name in program.explain()
