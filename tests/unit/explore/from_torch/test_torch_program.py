"""PyTorch modules as programs: what goes in and comes out, names of sizes, what is refused and where, and that PyTorch stays as it is."""

import subprocess
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


def test_arguments_by_position_and_by_name_are_the_same(torch: Any) -> None:
    def scaled(x: Any, mask: Any = None, scale: float = 2.0) -> Any:
        return x * scale if mask is None else x.masked_fill(mask, -1.0) * scale

    rows = torch.export.Dim("rows")
    x, mask = torch.randn(3, 4), torch.randn(3, 4) > 0
    masked = from_torch(
        scaled,
        x,
        keywords={"mask": mask, "scale": 2.0},
        dynamic_shapes={"x": {0: rows}, "mask": {0: rows}, "scale": None},
        record="none",
    )
    wanted = scaled(x, mask)
    for found in masked(x, mask), masked(scale=2.0, mask=mask, x=x), masked(x, mask, torch.tensor(2.0)):
        torch.testing.assert_close(found, wanted)
    with pytest.raises(DataError, match="missing a required argument: 'x'"):
        masked(mask=mask)
    for other in torch.ones(30, 40), np.ones((30, 40)):
        with pytest.raises(DataError, match=r"is for 2\.0, and an array of shape \(30, 40\) was given"):
            masked(x, mask, other)
    plain = from_torch(scaled, x, record="none")
    torch.testing.assert_close(plain(x, None, 2.0), scaled(x))
    with pytest.raises(DataError, match="it was made without 'mask'"):
        plain(x, mask)
    of_nan = from_torch(scaled, x, None, float("nan"), record="none")
    assert of_nan(x, None, float("nan")).isnan().all()


def test_tensors_without_elements_one_by_one_are_named(torch: Any, pair: tuple[Any, TorchProgram]) -> None:
    _, program = pair
    x = torch.ones(2, 4)
    others = {
        "sparse": x.to_sparse(),
        "meta": x.to("meta"),
        "quantized": torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        "nested": torch.nested.nested_tensor([x[0], x[1]]),
    }
    for kind, other in others.items():
        with pytest.raises(DataError, match=f"'input' is a {kind} tensor"):
            program(other)
    for other in None, "x":
        with pytest.raises(DataError, match=f"'input' is {other!r}, and a tensor is wanted"):
            program(other)


def test_sizes_that_do_not_fit_are_said_in_the_callers_words(torch: Any) -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 3)

        def forward(self, x: Any, mask: Any, pairs: Any) -> Any:
            return self.linear(x) * mask[:, None], pairs.reshape(-1, 2).sum(1)

    batch, half = torch.export.Dim("batch", max=6), torch.export.Dim("mod", max=8)
    program = from_torch(
        Layer(),
        torch.ones(2, 4),
        torch.ones(2),
        torch.ones(4),
        dynamic_shapes=({0: batch}, {0: batch}, {0: 2 * half}),
        record="none",
    )
    assert set(program.symbols) == {"batch", "mod_"}
    for sizes, message in {
        (2, 3, 4): "axis 0 of 'mask' is 3, and batch is 2",
        (7, 7, 4): "the program is for batch <= 6, and batch is 7",
        (0, 0, 4): "batch is 0: an unknown size is at least 1",
        (2, 2, 5): r"'pairs' is not of the shape \(2\*mod_,\) for any mod_: 1 is left over",
    }.items():
        x, mask, pairs = sizes
        with pytest.raises(DataError, match=f"^error: .shapes. {message}$"):
            program(torch.ones(x, 4), torch.ones(mask), torch.ones(pairs))


def test_axes_counted_from_the_end_have_the_names_of_their_dims(torch: Any) -> None:
    rows = torch.export.Dim("rows")
    program = from_torch(lambda x: x + 1, torch.ones(2, 4), dynamic_shapes=({-2: rows},), record="none")
    assert program.symbols == ("rows",)


def test_a_tensor_that_no_result_needs_is_one_all_the_same(torch: Any) -> None:
    program = from_torch(lambda x: torch.arange(3), torch.ones(2), record="none")
    assert torch.equal(program(torch.ones(2)), torch.arange(3))
    assert torch.equal(from_torch(lambda: torch.arange(3), record="none")(), torch.arange(3))


def test_pieces_of_an_unknown_size(torch: Any) -> None:
    def in_pieces(x: Any) -> Any:
        return (*x.chunk(2, 1), *x.split(x.shape[1] // 2, 1))

    n = torch.export.Dim("n")
    program = from_torch(in_pieces, torch.ones(2, 6), dynamic_shapes=({1: 2 * n},), record="none")
    for size in (2, 6, 10):
        x = torch.randn(2, size)
        torch.testing.assert_close(program(x), in_pieces(x), rtol=0, atol=0)


def test_a_size_that_only_pytorch_can_simplify(torch: Any) -> None:
    """What two convolutions leave of n is ((n - 10) // 5 - 2) // 2 + 1 for JAX; PyTorch makes n // 10 - 1 of it, as its users may."""

    class Features(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Conv1d(1, 8, 10, stride=5), torch.nn.Conv1d(8, 8, 3, stride=2))

        def forward(self, x: Any) -> Any:
            return self.layers(x[:, None]) + torch.arange(x.shape[1] // 10 - 1)

    module = Features().eval()
    sizes = {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}
    program = from_torch(module, torch.ones(2, 70), dynamic_shapes=(sizes,), record="none")
    for shape in ((1, 99), (3, 121)):
        x = torch.randn(shape)
        torch.testing.assert_close(program(x), module(x).detach(), rtol=1e-5, atol=1e-5)


def test_a_condition_on_a_size_is_for_each_call(torch: Any) -> None:
    def branched(x: Any) -> Any:
        return torch.cond(x.shape[0] > 3, lambda x: x * 2, lambda x: x - 1, (x,))

    program = from_torch(branched, torch.ones(5), dynamic_shapes=({0: torch.export.Dim("n")},), record="none")
    for size in (2, 3, 4, 9):
        x = torch.randn(size)
        torch.testing.assert_close(program(x), branched(x))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_transposed_convolutions_of_groups(torch: Any, groups: int) -> None:
    module = torch.nn.ConvTranspose2d(8, 12, (3, 2), stride=(2, 3), padding=1, output_padding=1, groups=groups)
    program = from_torch(module, torch.ones(2, 8, 4, 5), dynamic_shapes=({0: torch.export.Dim("b")},), record="none")
    x = torch.randn(3, 8, 4, 5)
    torch.testing.assert_close(program(x), module(x).detach(), rtol=1e-5, atol=1e-5)


def test_a_recurrent_network_with_a_projection(torch: Any) -> None:
    module = torch.nn.LSTM(4, 5, 2, proj_size=3, bidirectional=True, batch_first=True).eval()
    program = from_torch(module, torch.ones(2, 6, 4), dynamic_shapes=({0: torch.export.Dim("b")},), record="none")
    x = torch.randn(3, 6, 4)
    torch.testing.assert_close(program(x), module(x), check_stride=False, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["bool", "uint8", "int16"])
def test_real_functions_of_integers(torch: Any, name: str) -> None:
    def functions(x: Any) -> Any:
        return torch.sigmoid(x), torch.erfc(x), torch.sqrt(x), x.to(torch.float32).mean(), x * 0.5

    x = torch.tensor([0, 1, 3, 1]).to(getattr(torch, name))
    torch.testing.assert_close(from_torch(functions, x, record="none")(x), functions(x), rtol=1e-6, atol=1e-6)


def test_signs_of_what_is_no_number(torch: Any) -> None:
    program = from_torch(lambda x: (torch.sign(x), torch.sgn(x)), torch.ones(4), record="none")
    x = torch.tensor([float("nan"), -2.0, 0.0, float("inf")])
    for found in program(x):
        torch.testing.assert_close(found, torch.sign(x))


def test_scaled_error_functions_where_powers_overflow(torch: Any) -> None:
    program = from_torch(
        lambda x: (torch.special.erfcx(x), torch.special.log_ndtr(x)), torch.ones(7, dtype=torch.float64), record="none"
    )
    x = torch.tensor([-30.0, -2.0, 0.0, 1.5, 9.5, 30.0, float("inf")], dtype=torch.float64)
    erfcx, log_ndtr = program(x)
    torch.testing.assert_close(erfcx, torch.special.erfcx(x), rtol=1e-13, atol=0)
    torch.testing.assert_close(log_ndtr, torch.special.log_ndtr(x), rtol=1e-13, atol=1e-16)


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
    assert caught.value.place.file == __file__
    assert "torch.bernoulli" in caught.value.place.text


def test_what_jax_does_not_lower_is_refused_at_its_line(torch: Any) -> None:
    """JAX has eigenvalues of general matrices on CPUs only."""

    def forward(x: Any) -> Any:
        return torch.linalg.eigvals(x)

    with pytest.raises(Unsupported, match=r"JAX does not lower aten\.linalg_eig for cuda") as caught:
        from_torch(forward, torch.ones(4, 4), record="none")
    assert "eigvals" in caught.value.place.text


def test_a_size_by_a_factor_is_refused_in_words_of_sizes(torch: Any) -> None:
    """PyTorch multiplies the size by 0.7 as a float, and truncates; of a known size it is a number."""

    def shrunk(x: Any) -> Any:
        return torch.nn.functional.interpolate(x, scale_factor=0.7)

    x, w = torch.ones(1, 2, 9), torch.export.Dim("w", min=4)
    with pytest.raises(Unsupported, match="a size is computed from a float by trunc") as caught:
        from_torch(shrunk, x, dynamic_shapes=({2: w},), record="none")
    assert "size=(...)" in (caught.value.help or "")
    torch.testing.assert_close(from_torch(shrunk, x, record="none")(x), shrunk(x))


def test_a_module_that_changes_its_buffers_is_refused(torch: Any) -> None:
    module = torch.nn.BatchNorm1d(3).train()
    with pytest.raises(Unsupported, match=r"the module changes .*: a program has no state") as caught:
        from_torch(module, torch.ones(2, 3))
    assert "eval()" in (caught.value.help or "")
    x = torch.randn(4, 3)
    torch.testing.assert_close(from_torch(module.eval(), x, record="none")(x), module(x).detach())


def test_a_module_that_changes_its_parameters_is_refused(torch: Any) -> None:
    class Halved(torch.nn.Linear):
        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                self.weight.div_(2)
            return super().forward(x)

    with pytest.raises(Unsupported, match=r"the module changes weight: a program has no state"):
        from_torch(Halved(4, 4), torch.ones(2, 4), dynamic_shapes=({0: torch.export.Dim("b")},))


def test_a_function_that_writes_into_its_argument_is_refused(torch: Any) -> None:
    with pytest.raises(Unsupported, match="writes into its argument 'x'") as caught:
        from_torch(lambda x: x.add_(1) * 2, torch.ones(2, 3))
    assert "clone()" in (caught.value.help or "")


def test_sizes_that_depend_on_data_are_refused_at_their_line(torch: Any) -> None:
    def positive(x: Any) -> Any:
        return x[x > 0]

    with pytest.raises(Unsupported, match=r"the size of what aten\.index\.Tensor makes depends on data") as caught:
        from_torch(positive, torch.ones(2, 3))
    assert "torch.where" in (caught.value.help or "")
    assert "in positive itself" in caught.value.details
    assert "x[x > 0]" in caught.value.place.text


def test_example_arguments_that_the_module_does_not_take(torch: Any) -> None:
    module = torch.nn.Linear(4, 3)
    with pytest.raises(UsageError, match="missing a required argument: 'input'"):
        from_torch(module)
    with pytest.raises(UsageError, match="too many positional arguments"):
        from_torch(module, torch.ones(2, 4), 1)
    with pytest.raises(UsageError, match="from_torch takes a module or a function"):
        from_torch(torch.nn.Linear, torch.ones(2, 4))


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


def test_derivatives_of_derivatives(torch: Any) -> None:
    """Forward through backward, beside a tensor that the function holds."""
    weights = torch.randn(4)

    def function(x: Any) -> Any:
        return torch.func.hessian(lambda x: (weights * x**3).prod())(x), torch.func.jacfwd(torch.sigmoid)(x)

    x = torch.randn(4)
    for found, wanted in zip(from_torch(function, x, record="none")(x), function(x), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_joint_graph_gives_its_loss_and_gradients(torch: Any) -> None:
    class Loss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

        def forward(self, x: Any) -> Any:
            return self.inner(x).square().mean()

    module, x = Loss(), torch.randn(3, 4)
    experimental = pytest.importorskip("torch.export.experimental")
    joint = experimental._export_forward_backward(torch.export.export(module, (x,)))
    loss = module(x)
    wanted = loss.detach(), *torch.autograd.grad(loss, list(module.parameters()))
    for found, each in zip(from_torch(joint, record="none")(x), wanted, strict=True):
        torch.testing.assert_close(found, each, rtol=1e-5, atol=1e-6)


def test_a_number_at_the_first_stage(torch: Any) -> None:
    x = torch.tensor([[3, 9], [4, 1]])
    assert from_torch(torch.max, x).run_cpu(x, stage="hlo") == 9


def test_what_pytorch_does_not_decompose_is_refused(torch: Any) -> None:
    arguments = torch.eye(3).to_sparse_csr(), torch.ones(3, 3), torch.ones(3, 3)
    with pytest.raises(Unsupported, match="does not decompose the module"):
        from_torch(torch.sparse.sampled_addmm, *arguments)


def test_a_quantized_graph_in_a_file(torch: Any, tmp_path: Path) -> None:
    """Another process reads it, in which PyTorch does not know its ops yet."""
    pytest.importorskip("torch.ao.quantization.fx._decomposed")

    class Quantized(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.1, 2, -128, 127, torch.int8)

    torch.export.save(torch.export.export(Quantized(), (torch.ones(2, 3),)), tmp_path / "quantized.pt2")
    command = [sys.executable, "-W", "ignore", "-m", "xla_emitters.tools.main", "list", str(tmp_path / "quantized.pt2")]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
