"""`xla-emitters optimize`: prints a module as the real XLA:GPU optimizes it for a device, without a GPU; as text, or as an HLO proto."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from xla_emitters.tools.input_output import read_source, write_file
from xla_emitters.tools.verb_options import add_target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="HLO before optimization, or StableHLO with static sizes; '-' is standard input"
    )
    add_target(parser)
    parser.add_argument(
        "--flag",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one of XLA's flags, such as xla_gpu_enable_triton_gemm=false; may be given several times",
    )
    parser.add_argument(
        "--devices",
        type=int,
        metavar="N",
        help="the number of devices that XLA partitions the module for; default: what the module says",
    )
    parser.add_argument(
        "--emit", choices=("text", "proto"), default="text", help="HLO text (default), or a serialized HloModuleProto"
    )
    parser.add_argument("-o", "--output", default="-", metavar="OUT.hlo", help="default: standard output")


def run(options: argparse.Namespace) -> int:
    from xla_emitters.explore.optimize import optimize, parse_flag
    from xla_emitters.pipelines.kept_programs import read_text

    flags = dict(map(parse_flag, options.flag))
    text, name = read_text(read_source(options.file))
    remark = partial(print, file=sys.stderr)
    toolchain = options.settings.toolchain
    found = optimize(
        text, options.target, flags, devices=options.devices, name=name, remark=remark, toolchain=toolchain
    )
    if options.emit == "proto":
        from xla_emitters.text.binary.reading import written

        write_file(options.output, written(found, "proto", name))
        return 0
    write_file(options.output, found)
    return 0
