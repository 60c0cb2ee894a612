"""Which library function an op is, with its configuration; custom calls as XLA:GPU prints them; what is refused, and where."""

import json
from typing import Any

import numpy as np
import pytest

from xla_emitters.dialects.hlo.base import HloOp
from xla_emitters.dialects.hlo.library_calls import is_library_call, library_call_of
from xla_emitters.errors import Unsupported, VerifyError, XlaEmittersError
from xla_emitters.graph.entry import entry_of
from xla_emitters.library import FUNCTIONS
from xla_emitters.runtime.reference.reference import evaluate
from xla_emitters.text.hlo.hlo_parser import parse_hlo


def last_call(text: str) -> tuple[str, dict[str, Any]]:
    """The call of the text's last op that a library computes. The configuration survives JSON."""
    (*_, op) = (op for op in parse_hlo(text, "m.hlo").walk() if isinstance(op, HloOp) and is_library_call(op))
    name, config = library_call_of(op)
    assert name in FUNCTIONS
    assert json.loads(json.dumps(config)) == config
    return name, config


def module(*lines: str, before: str = "") -> str:
    return "HloModule m\n\n" + before + "ENTRY e {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


GEMM: dict[str, Any] = {
    "alpha_real": 1,
    "alpha_imag": 0,
    "beta": 0,
    "dot_dimension_numbers": {
        "lhs_contracting_dimensions": ["1"],
        "rhs_contracting_dimensions": ["0"],
        "lhs_batch_dimensions": [],
        "rhs_batch_dimensions": [],
    },
    "precision_config": {"operand_precision": ["DEFAULT", "DEFAULT"], "algorithm": "ALG_UNSET"},
    "epilogue": "DEFAULT",
    "lhs_stride": "32768",
    "damax_output": False,
    "scale_mode": 0,
}


def gemm(operands: str, result: str, target: str = "__cublas$lt$matmul", **changes: Any) -> str:
    """`operands` are types; the configuration is XLA's with `changes`."""
    types = operands.split()
    lines = [f"p{i} = {ir_type} parameter({i})" for i, ir_type in enumerate(types)]
    config = json.dumps({"operation_queue_id": "0", "gemm_backend_config": {**GEMM, **changes}})
    names = ", ".join(f"p{i}" for i in range(len(types)))
    call = f'ROOT g = {result} custom-call({names}), custom_call_target="{target}", backend_config={config}'
    return module(*lines, call)


A, B, D = "bf16[8,16]", "bf16[16,4]", "(bf16[8,4], s8[64])"
F8 = "f8e4m3fn[8,16] f8e4m3fn[16,4]"
SCALED = "(f8e4m3fn[8,4], f32[], s8[64])"


@pytest.mark.parametrize(
    ("text", "operands", "outputs"),
    [
        (gemm(f"{A} {B}", "bf16[8,4]", "__cublas$gemm"), "lhs rhs", "d"),
        (gemm(f"{A} {B} bf16[8,4]", D, beta=1.0), "lhs rhs c", "d workspace"),
        (gemm(f"{A} {B} bf16[8,4] bf16[4]", D, beta=1, epilogue="BIAS_RELU"), "lhs rhs c bias", "d workspace"),
        (gemm(f"{A} {B} bf16[4]", "(bf16[8,4], bf16[8,4], s8[64])", epilogue="BIAS_GELU_AUX"), "lhs rhs bias", "d aux workspace"),
        (gemm(f"{F8} f32[] f32[]", D, "__cublas$lt$matmul$f8", scale_mode=1), "lhs rhs lhs_scale rhs_scale", "d workspace"),
        (
            gemm(f"{F8} f32[] f32[] f32[] bf16[4]", "f8e4m3fn[8,4]", "__cublas$lt$matmul$f8", epilogue="BIAS"),
            "lhs rhs lhs_scale rhs_scale d_scale bias",
            "d",
        ),
        (gemm(f"{F8} bf16[8,4] f32[] f32[]", D, "__cublas$lt$matmul$f8", beta=1), "lhs rhs c lhs_scale rhs_scale", "d workspace"),
        (
            gemm(f"{F8} f32[] f32[] bf16[4] f32[]", SCALED, "__cublas$lt$matmul$f8", epilogue="BIAS", damax_output=True),
            "lhs rhs lhs_scale rhs_scale bias d_scale",
            "d amax workspace",
        ),
    ],
)  # fmt: skip
def test_the_operands_of_matrix_products(text: str, operands: str, outputs: str) -> None:
    """In the order in which XLA:GPU has them (jaxlib 0.10.2, H200, Triton off)."""
    name, config = last_call(text)
    assert name == "gemm"
    assert (config["operands"], config["outputs"]) == (operands.split(), outputs.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (gemm(f"{A} {B}", D, beta="x"), "gemm_backend_config.beta is x"),
        (gemm(f"{A} {B}", D, beta=1), "they would be lhs, rhs, c"),
        (gemm(f"{A} {B}", D, epilogue=7), "epilogue is 7"),
        (gemm(f"{A} {B}", D, epilogue="BIAS"), "they would be lhs, rhs, bias"),
        (gemm(f"{A} {B} bf16[8]", D, epilogue="BIAS"), "does not fit its bias"),
        (gemm(f"{A} {B}", D, alpha_real=True), "alpha_real is True"),
        (gemm(f"{A} {B}", D, dot_dimension_numbers=[]), "must be an object"),
        (
            gemm(f"{A} {B}", D, dot_dimension_numbers={"lhs_contracting_dimensions": ["-1"]}),
            "must be a list of dimensions",
        ),
        (gemm(f"{A} {B}", D, dot_dimension_numbers={"lhs_contracting_dimensions": ["7"]}), "does not fit the operands"),
        (gemm(f"{A} {B}", "(bf16[8,5], s8[64])"), "the dot gives"),
        (gemm(f"{A} {B}", D, damax_output=True), "the dot gives []"),
    ],
)
def test_a_broken_configuration_is_an_error_at_its_instruction(text: str, message: str) -> None:
    with pytest.raises(VerifyError, match=r"m\.hlo:") as raised:
        last_call(text)
    assert message in str(raised.value)
    assert raised.value.place is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (gemm(f"{A} {B}", D, epilogue="TANH"), "epilogue 'TANH'"),
        (gemm(f"{A} {B}", D, precision_config={"algorithm": "ALG_ODD"}), "algorithm 'ALG_ODD'"),
        (gemm(f"{A} {B}", D, scale_mode=2), "scales of blocks"),
        (gemm(f"{A} {B}", D, "xla_ffi_python_gpu_callback"), "calls Python on the host"),
        (gemm(f"{A} {B}", D, "__cudnn$fmhaSoftmax"), "is not in the text"),
        (gemm(f"{A} {B}", D, "somebodys_kernel"), "'somebodys_kernel': the target is not known here"),
    ],
)
def test_what_no_function_computes_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(Unsupported, match=r"m\.hlo:") as raised:
        last_call(text)
    assert message in str(raised.value)


def convolved(target: str, operands: str, result: str, labels: str = "b01f_o01i->b01f", **config: Any) -> str:
    lines = [f"p{i} = {ir_type} parameter({i})" for i, ir_type in enumerate(operands.split())]
    names = ", ".join(f"p{i}" for i in range(len(lines)))
    said = {"activation_mode": "kNone", "conv_result_scale": 1, "side_input_scale": 0, "leakyrelu_alpha": 0, **config}
    text = json.dumps({"cudnn_conv_backend_config": said})
    rest = f'window={{size=3x3 stride=2x2}}, dim_labels={labels}, custom_call_target="{target}", backend_config={text}'
    return module(*lines, f"ROOT g = ({result}, u8[0]) custom-call({names}), {rest}")


IMAGE, KERNEL, RESULT = "f32[2,9,9,4]", "f32[6,3,3,4]", "f32[2,4,4,6]"


@pytest.mark.parametrize(
    ("text", "operands", "kind"),
    [
        (convolved("__cudnn$convForward", f"{IMAGE} {KERNEL}", RESULT), "image kernel", "forward"),
        (convolved("__cudnn$convBackwardInput", f"{RESULT} {KERNEL}", IMAGE), "result kernel", "backward_input"),
        (convolved("__cudnn$convBackwardFilter", f"{IMAGE} {RESULT}", KERNEL), "image result", "backward_filter"),
        (
            convolved(
                "__cudnn$convBiasActivationForward", f"{IMAGE} {KERNEL} f32[6] {RESULT}", RESULT, side_input_scale=1
            ),
            "image kernel bias side",
            "forward",
        ),
    ],
)
def test_convolutions_of_cudnn(text: str, operands: str, kind: str) -> None:
    name, config = last_call(text)
    assert (name, config["operands"], config["kind"]) == ("convolution", operands.split(), kind)
    assert config["window"][0] | {"size": 3, "stride": 2} == config["window"][0]


@pytest.mark.parametrize(
    "text",
    [
        convolved("__cudnn$convForward", f"{IMAGE} {KERNEL}", RESULT, "b01f_o0i->b01f"),
        convolved("__cudnn$convForward", f"{IMAGE} {KERNEL}", "f32[2,4,5,6]"),
        convolved("__cudnn$convBackwardInput", f"{RESULT} {KERNEL}", "f32[2,7,9,4]"),
        convolved("__cudnn$convBiasActivationForward", f"{IMAGE} {KERNEL} f32[5]", RESULT),
        convolved("__cudnn$convForward", f"{IMAGE} {KERNEL}", RESULT, activation_mode=1),
    ],
)
def test_a_convolution_that_does_not_fit_is_an_error(text: str) -> None:
    with pytest.raises(VerifyError, match=r"m\.hlo:"):
        last_call(text)


def test_attributes_of_mlir_are_read_as_configurations() -> None:
    """As JAX writes them for its calls of cuSOLVER."""
    config = "api_version=API_VERSION_TYPED_FFI, backend_config={algorithm = 0 : ui8, lower = false}"
    call = f'custom-call(a), custom_call_target="cusolver_syevd_ffi", {config}'
    text = module("a = f32[3,3] parameter(0)", f"ROOT v = (f32[3,3], f32[3], s32[]) {call}")
    name, config = last_call(text)
    assert (name, config["lower"], config["outputs"]) == ("eigh", False, ["vectors", "values", "info"])
    for broken in ("lower = 3", "lower", "lower = true lower"):
        with pytest.raises(XlaEmittersError):
            last_call(text.replace("lower = false", broken))


def test_sizes_of_factorizations_are_checked() -> None:
    text = module(
        "a = f32[3,4] parameter(0)",
        'ROOT v = (f32[3,4], f32[4]) custom-call(a), custom_call_target="cusolver_geqrf_ffi"',
    )
    with pytest.raises(VerifyError, match=r"the matrices give \[3\]"):
        last_call(text)


EIG = 'custom-call(a), custom_call_target="{}", api_version=API_VERSION_TYPED_FFI, backend_config={{{}}}'


@pytest.mark.parametrize(
    ("target", "config", "element", "values", "outputs"),
    [
        (
            "cuhybrid_eig_real",
            "left = false, right = true",
            "f32",
            "f32[3], f32[3]",
            ["real", "imaginary", "workspace", "vectors"],
        ),
        ("cuhybrid_eig_comp", "left = false, right = false", "c64", "c64[3]", ["values", "workspace", "workspace"]),
        (
            "lapack_sgeev_ffi",
            "compute_left = 78 : ui8, compute_right = 86 : ui8",
            "f32",
            "f32[3], f32[3]",
            ["real", "imaginary", "workspace", "vectors"],
        ),
    ],
)
def test_eigenvalues_of_any_matrix(target: str, config: str, element: str, values: str, outputs: list[str]) -> None:
    call = EIG.format(target, config)
    text = module(f"a = {element}[3,3] parameter(0)", f"ROOT v = ({values}, c64[3,3], c64[3,3], s32[]) {call}")
    name, found = last_call(text)
    assert (name, found["outputs"]) == ("eig", [*outputs, "info"])
    with pytest.raises(Unsupported, match="left eigenvectors"):
        last_call(text.replace("left = false", "left = true").replace("left = 78", "left = 86"))
    with pytest.raises(VerifyError, match="square matrices"):
        last_call(text.replace(f"a = {element}[3,3]", f"a = {element}[3,4]"))


def test_systems_of_three_diagonals() -> None:
    a = [f"p{n} = f32[2,5] parameter({n})" for n in range(3)]
    call = "custom-call(p0, p1, p2, b)"
    text = module(
        *a, "b = f32[2,5,3] parameter(3)", f'ROOT x = f32[2,5,3] {call}, custom_call_target="cusparse_gtsv2_ffi"'
    )
    name, config = last_call(text)
    assert (name, config["outputs"]) == ("tridiagonal_solve", ["solution"])
    results = "(f32[2,5], f32[2,5], f32[2,5], f32[2,5,3], s32[2])"
    config = last_call(
        text.replace("x = f32[2,5,3]", f"x = {results}").replace("cusparse_gtsv2_ffi", "lapack_sgtsv_ffi")
    )[1]
    assert config["outputs"] == [*["workspace"] * 3, "solution", "info"]
    with pytest.raises(VerifyError, match=r"m\.hlo:(.|\n)*f32\[2,5\]"):
        last_call(text.replace("p1 = f32[2,5]", "p1 = f32[2,4]"))


def test_a_marker_passes_its_operand_and_is_no_call() -> None:
    text = module(
        "a = f32[3] parameter(0)",
        'ROOT v = f32[3] custom-call(a), custom_call_target="Sharding", sharding={replicated}',
    )
    assert not [op for op in parse_hlo(text).walk() if isinstance(op, HloOp) and is_library_call(op)]
    (got,) = evaluate(entry_of(parse_hlo(text)), [np.arange(3, dtype=np.float32)])
    assert got.tolist() == [0, 1, 2]


def test_ops_with_a_hidden_state_take_different_numbers() -> None:
    text = module(
        "a = u64[2] rng-get-and-update-state(), delta=5",
        "b = u64[2] rng-get-and-update-state(), delta=7",
        "low = f32[] constant(2)",
        "high = f32[] constant(3)",
        "r = f32[1000] rng(low, high), distribution=rng_uniform",
        "s = f32[1000] rng(low, high), distribution=rng_normal",
        "ROOT t = (u64[2], u64[2], f32[1000], f32[1000]) tuple(a, b, r, s)",
    )
    first, second, uniform, normal = evaluate(entry_of(parse_hlo(text)), [])
    assert second[0] - first[0] == 5
    assert uniform.min() >= 2
    assert uniform.max() < 3
    assert abs(uniform.mean() - 2.5) < 0.05
    assert abs(normal.mean() - 2) < 0.4
    assert 2.7 < normal.std() < 3.3


def test_gemm_in_a_module_of_xla() -> None:
    text = gemm(f"{A} {B} bf16[4]", D, epilogue="BIAS_RELU")
    random = np.random.default_rng(0)
    kind = entry_of(parse_hlo(text)).parameters
    arrays = [random.integers(-3, 3, p.result.type.get_shape()).astype("bfloat16") for p in kind]  # type: ignore[attr-defined]
    got, workspace = evaluate(entry_of(parse_hlo(text)), arrays)
    a, b, bias = (array.astype(np.float32) for array in arrays)
    assert (got.astype(np.float32) == np.maximum(a @ b + bias, 0)).all()
    assert workspace.shape == (64,)


def test_what_only_the_optimizer_of_xla_replaces_is_refused_with_the_way_there() -> None:
    """One of them has a word in common with `ragged-all-to-all`, which needs other devices."""
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"
    parameters = ("x = f32[6,4] parameter(0)", "w = f32[2,4,3] parameter(1)", "g = s32[2] parameter(2)")
    ragged = module(*parameters, f"ROOT r = f32[6,3] ragged-dot(x, w, g), {dims}")
    (*_, op) = (op for op in parse_hlo(ragged, "m.hlo").walk() if isinstance(op, HloOp) and op.opcode == "ragged-dot")
    with pytest.raises(Unsupported) as raised:
        library_call_of(op)
    assert raised.value.help.startswith("XLA's optimizer replaces it: `xla-emitters optimize FILE`; list shows")
