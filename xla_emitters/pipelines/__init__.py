"""Compilations from end to end: the lists of passes (the map), the options of a compilation, and the driver that runs the lists."""
