"""Warp 1.19, without a driver: each block has a row as a tile in the registers of its 256 threads.

The declarations of variables that the kernel does not use are left out of the text, which ends with a NUL.
"""

import re

import warp as wp

wp.config.enable_backward = False


@wp.kernel
def softmax(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    row, _ = wp.tid()
    tile = wp.tile_load(x[row], shape=200)
    powers = wp.tile_map(wp.exp, tile)
    wp.tile_store(y[row], wp.tile_map(wp.div, powers, wp.tile_broadcast(wp.tile_sum(powers), shape=(200,))))


if __name__ == "__main__":
    import __main__

    files = wp.compile_aot_module(__main__, arch=90, module_dir="made", use_ptx=True, strip_hash=True)
    text = next(each for each in files if each.suffix == ".ptx").read_text()
    open("warp_softmax.ptx", "w").write(re.sub(r"(?m)^\.global .*;\n", "", text))
