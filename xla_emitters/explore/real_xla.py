"""The real XLA:GPU, without a GPU: compiles and optimizes HLO text for a described device.

    XlaGpu().compile(text, directory)    ->  directory/*.ptx, *.mlir-passes.log, thunk_sequence.txt ...     no HLO pass is run
    XlaGpu().optimize(text, directory)   ->  the module after all HLO passes, which `dumped(directory)` reads

This module calls PJRT's CUDA plugin through its C API with ctypes. A topology made from a device description needs no device, and a program
of format "hlo" reaches the emitters unchanged, fusions and layouts included. It needs the extra [xla] (jaxlib for the parsers of HLO and
StableHLO, and the plugin), libdevice and ptxas (the extra [ptxas]). A failed check inside XLA aborts the process: `optimize.py` runs this
module in a child process; other callers with possibly invalid modules should do the same.
Source: PJRT's C API header (positions in the function table, which only grows at its end) and DebugOptions' flag names; the files in XLA's
xla/backends/gpu/target_config/specs for rates and memory sizes, a data sheet for t4.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from xla_emitters.device import Device, device, device_running
from xla_emitters.errors import DataError, ToolError, UsageError, XlaEmittersError
from xla_emitters.lowering.toolchain.tools import find_tool
from xla_emitters.settings import Toolchain, read_settings
from xla_emitters.support.decoding import saved_module
from xla_emitters.support.extras import install_command, installed
from xla_emitters.text.binary.jaxlib_process import with_shardings

Flag = bool | int | float | str
"""The type of a value of XLA's DebugOptions."""

HELP = install_command(extras="xla,ptxas")

# Positions in PJRT_Api, counted from the first function pointer.
_FUNCTIONS = {
    "Error_Destroy": 0,
    "Error_Message": 1,
    "Plugin_Initialize": 3,
    "Executable_Destroy": 40,
    "TopologyDescription_Create": 82,
    "Compile": 89,
}
# struct_size, extension_start, and version (struct_size, extension_start, major, minor) precede them.
_VERSION_OFFSET = 32
_TABLE_OFFSET = 40


def _arguments(*names: str) -> type[ctypes.Structure]:
    """An argument struct of PJRT: its size, an extension pointer, then pointer-sized fields."""
    fields = [(name, ctypes.c_void_p) for name in ("struct_size", "extension_start", *names)]
    return type("Arguments", (ctypes.Structure,), {"_fields_": fields})


class _NamedValue(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("value", ctypes.c_char_p),
        ("value_size", ctypes.c_size_t),
    )


class XlaGpu:
    """XLA:GPU for one described device, in this process.

    raises ToolError if the extra is missing or the plugin does not load
    """

    def __init__(
        self, chip: Device | None = None, partitions: int = 1, replicas: int = 1, cuda: Path | None = None
    ) -> None:
        """partitions: how many of the chip a module is partitioned for; replicas: how many times; cuda: as `toolkit_of`, by default of the
        ptxas that the environment says"""
        self._cuda = cuda or toolkit_of(read_settings().toolchain)
        self.chip, self.partitions, self.replicas = chip or device("h200"), partitions, replicas
        self._parser: Any = _import("jaxlib._hlo")
        self._jax: Any = _import("jaxlib._jax")
        library = ctypes.CDLL(str(_find_below_sys_path("jax_plugins/xla_cuda*/xla_cuda_plugin.so")))
        library.GetPjrtApi.restype = ctypes.c_void_p
        self._api: int = library.GetPjrtApi()
        major = ctypes.c_int.from_address(self._api + _VERSION_OFFSET).value
        if major != 0:
            raise ToolError(f"PJRT C API version {major}.x is not supported, only 0.x", stage="xla", help=HELP)
        self._call("Plugin_Initialize", _arguments()())
        options = (_NamedValue * 2)()
        texts = (
            (b"target_config", description(self.chip).encode()),
            (b"topology", f"1x1x{partitions * replicas}".encode()),
        )
        for option, (key, value) in zip(options, texts, strict=True):
            option.struct_size = ctypes.sizeof(_NamedValue)
            option.name, option.name_size = key, len(key)
            option.value, option.value_size = value, len(value)
        create = _arguments("name", "name_size", "options", "num_options", "topology")()
        create.name, create.name_size = ctypes.cast(ctypes.c_char_p(b""), ctypes.c_void_p).value, 0
        create.options, create.num_options = ctypes.addressof(options), len(options)
        self._topology: int = self._call("TopologyDescription_Create", create).topology

    def parse(self, text: str) -> Any:
        """jaxlib's module for HLO text or StableHLO. Raises DataError with XLA's own message."""
        is_hlo = re.search(r"^\s*HloModule\b", text, re.MULTILINE)
        try:
            if is_hlo:
                return self._parser.hlo_module_from_text(text)
            return self._jax.mlir.mlir_module_to_xla_computation(text).get_hlo_module()
        except (self._jax.JaxRuntimeError, ValueError) as error:
            kind = "HLO" if is_hlo else "StableHLO"
            raise DataError(f"XLA cannot parse this {kind}: {error}", stage="xla") from error

    def compile(self, text: str, directory: Path | None = None) -> None:
        """Compiles a module without running HLO passes; XLA's dumps are written to `directory`, if given.

        raises DataError with XLA's message
        """
        flags: dict[str, Flag] = {"xla_disable_all_hlo_passes": True}
        if directory is not None:
            flags |= {"xla_dump_to": str(directory), "xla_dump_hlo_as_text": True, "xla_dump_emitter_re": ".*"}
        self._compile(self.parse(text), flags)

    def optimize(self, text: str, directory: Path, flags: Mapping[str, Flag]) -> None:
        """Runs XLA's HLO passes, and makes code; the module is dumped in between, with constants written out.

        text       HLO without fusions, or StableHLO
        directory  an empty one, for XLA's dumps
        flags      DebugOptions by name: {"xla_gpu_enable_triton_gemm": False}
        raises     DataError with XLA's message, UsageError for a flag that XLA does not have or a value that it does not take
        """
        dump = {"xla_dump_to": str(directory), "xla_dump_hlo_as_text": True, "xla_dump_large_constants": True}
        if self.partitions > 1:  # only the proto says how the results of the partitions belong together
            dump["xla_dump_hlo_as_proto"] = True
        self._compile(self.parse(text), {**flags, **dump})

    def _compile(self, module: Any, flags: Mapping[str, Flag]) -> None:
        """Compiles jaxlib's module; raises DataError with XLA's message."""
        proto: bytes = module.as_serialized_hlo_module_proto()
        flags = {"xla_gpu_cuda_data_dir": str(self._cuda), "xla_gpu_autotune_level": 0, **flags}
        build: Any = self._jax.CompileOptions()
        build.executable_build_options.num_partitions = self.partitions
        build.executable_build_options.use_spmd_partitioning = self.partitions > 1
        # Shardings are in Shardy's dialect or in HLO's attributes; the partitioner of the one does not know the others.
        build.executable_build_options.use_shardy_partitioner = self.partitions > 1 and b"xla.sdy" in proto
        build.executable_build_options.num_replicas = self.replicas
        build.env_option_overrides = list(flags.items())
        options: bytes = build.SerializeAsString()
        code, settings = (
            ctypes.create_string_buffer(proto, len(proto)),
            ctypes.create_string_buffer(options, len(options)),
        )
        program = _arguments("code", "code_size", "format", "format_size")()
        form = ctypes.create_string_buffer(b"hlo")
        program.struct_size = ctypes.sizeof(program)
        program.code, program.code_size = ctypes.addressof(code), len(proto)
        program.format, program.format_size = ctypes.addressof(form), 3
        arguments = _arguments("topology", "program", "options", "options_size", "client", "executable")()
        arguments.topology, arguments.program = self._topology, ctypes.addressof(program)
        arguments.options, arguments.options_size = ctypes.addressof(settings), len(options)
        executable = self._call("Compile", arguments).executable
        destroy = _arguments("executable")()
        destroy.executable = executable
        self._call("Executable_Destroy", destroy)

    def _call(self, name: str, arguments: Any) -> Any:
        arguments.struct_size = ctypes.sizeof(arguments)
        error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self._address(name))(ctypes.addressof(arguments))
        if error:
            message = _arguments("error", "message", "message_size")()
            message.error = error
            self._call_without_error("Error_Message", message)
            text = ctypes.string_at(message.message, message.message_size).decode(errors="replace")
            destroy = _arguments("error")()
            destroy.error = error
            self._call_without_error("Error_Destroy", destroy)
            if text.startswith(("No such compile option", "While setting option")):
                raise UsageError(f"XLA refuses a flag: {text}", stage="xla")
            raise DataError(f"XLA:GPU: {text}", stage="xla")
        return arguments

    def _call_without_error(self, name: str, arguments: Any) -> None:
        arguments.struct_size = ctypes.sizeof(arguments)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._address(name))(ctypes.addressof(arguments))

    def _address(self, name: str) -> int:
        address = ctypes.c_void_p.from_address(self._api + _TABLE_OFFSET + 8 * _FUNCTIONS[name]).value
        assert address is not None
        return address


_OPTIMIZED = "*gpu_after_optimizations.txt"


def dumped(directory: Path) -> str | None:
    """The optimized module among XLA's dumps, or None if XLA did not get that far."""
    text = next((path.read_text("utf-8") for path in directory.glob(_OPTIMIZED)), None)
    # That of the last module may still be in the making: see `_watch_passes`.
    proto = next(directory.glob("*after_spmd_partitioner.hlo.pb"), None)
    if text is None or proto is None:
        return text
    found = saved_module(proto.read_bytes())
    assert found is not None
    return with_shardings(text, _import("jaxlib._hlo").HloModule.from_serialized_hlo_module_proto(found.module))


_MEMORY_BYTES = {
    "t4": 16 * 2**30,
    "a100": 42331013120,
    "a6000": 51041271808,
    "h100": 84942979072,
    "h200": 151397597184,
    "b200": 191514411008,
}
"""Properties of a GPU that XLA's cost model reads and our emitters do not: they decide which fusions are made."""


def description(chip: Device) -> str:
    """`chip` as the text of XLA's GpuTargetConfigProto, with the fields that its heuristics read.

    For a device that is not in `_MEMORY_BYTES`, size and speed are those of the newest listed device that is not newer.
    """
    major, minor = chip.compute_capability
    known = chip.name if chip.name in _MEMORY_BYTES else device_running(chip.architecture).name
    numbers = {
        "threads_per_block_limit": chip.threads_per_block_max,
        "threads_per_warp": chip.threads_per_warp,
        "shared_memory_per_block": chip.shared_bytes_per_block,
        "shared_memory_per_block_optin": chip.shared_bytes_per_block_optin,
        "shared_memory_per_core": chip.shared_bytes_per_core,
        "threads_per_core_limit": chip.threads_per_core,
        "core_count": chip.cores,
        "fpus_per_core": chip.multiprocessor.fp32,
        "block_dim_limit_x": chip.grid_max_x,
        "block_dim_limit_y": chip.grid_max_y,
        "block_dim_limit_z": 65535,
        "thread_dim_limit_x": 1024,
        "thread_dim_limit_y": 1024,
        "thread_dim_limit_z": 64,
        "memory_bandwidth": chip.bandwidth_bytes_per_s,
        "l2_cache_size": chip.l2_bytes,
        "clock_rate_ghz": chip.rates.clock_hz / 10**9,
        "device_memory_size": _MEMORY_BYTES[known],
        "registers_per_core_limit": 65536,
        "registers_per_block_limit": 65536,
        "device_address_bits": 64,
    }
    # XLA describes Hopper and Blackwell with accelerated features: its PTX is then for sm_90a.
    extension = " feature_extension: ACCELERATED_FEATURES" if major >= 9 else ""
    return (
        "gpu_device_info { "
        + " ".join(f"{key}: {value}" for key, value in numbers.items())
        + f' name: "{chip.name}" device_vendor: "NVIDIA Corporation" driver_version: "13.0.0" runtime_version: "12.8.0"'
        + ' compile_time_toolkit_version: "13.0.0" dnn_version: "9.10.0"'
        + f" cuda_compute_capability {{ major: {major} minor: {minor}{extension} }} }}"
        + f' platform_name: "CUDA" device_description_str: "{chip.name}"'
    )


def toolkit_of(toolchain: Toolchain) -> Path:
    """The directory of the CUDA toolkit that has the toolchain's ptxas. raises ToolError where there is none"""
    # A CUDA toolkit and NVIDIA's wheels are laid out alike: TOOLKIT/bin/ptxas, TOOLKIT/nvvm/libdevice.
    return Path(find_tool("ptxas", toolchain).path).resolve().parents[1]


def _import(name: str) -> Any:
    with installed("the real XLA", "xla", help=HELP):
        return import_module(name)


def _find_below_sys_path(pattern: str) -> Path:
    for directory in sys.path:
        if found := sorted(Path(directory or ".").glob(pattern)):
            return found[-1]
    raise ToolError(f"no file {pattern} is installed", stage="xla", help=HELP)


def serve() -> None:
    """Does one request for a parent process: reads it on stdin, in the format of `optimize.py`; prints the error, or {}, on stdout.

    The work "optimize" ends as soon as the optimized module is dumped: what XLA does after that is to make code, which takes most of the
    time (69 of 70 s for a chain of updates of one array) and which nobody reads.
    """
    request = json.load(sys.stdin)
    # XLA's passes print to stdout when they fail: what they print goes to stderr.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as output:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        is_answered = threading.Lock()

        def answer(found: Mapping[str, str]) -> None:
            is_answered.acquire()  # kept: the first answer ends the process
            json.dump(found, output)
            output.flush()
            os._exit(0)

        if request["work"] == "optimize":
            given = Path(request["directory"]), partial(answer, {})
            threading.Thread(target=_watch_passes, args=given, daemon=True).start()
        answer(_answer(request))


_WHOLE = re.compile(r"^ENTRY .*?^}", re.MULTILINE | re.DOTALL)
"""The end of a module's text: its last computation."""


def _watch_passes(directory: Path, end: Callable[[], None]) -> None:
    """Calls `end` when XLA's passes are done and their module is written: XLA dumps the assignment of buffers after it, or beside it."""
    while not any(directory.glob("*gpu_after_optimizations-*")):
        time.sleep(0.005)
    while not any(_WHOLE.search(path.read_text("utf-8", "replace")) for path in directory.glob(_OPTIMIZED)):
        time.sleep(0.005)
    end()


def _answer(request: Mapping[str, Any]) -> dict[str, str]:
    try:
        partitions, replicas = request.get("partitions", 1), request.get("replicas", 1)
        xla = XlaGpu(device(request["target"]), partitions, replicas, Path(request["cuda"]))
        text, directory = request["text"], Path(request["directory"])
        if request["work"] == "compile":
            xla.compile(text, directory)
        else:
            xla.optimize(text, directory, request["flags"])
    except XlaEmittersError as error:
        return {"error": type(error).__name__, "message": error.message, "help": error.help}
    return {}
