"""Compilations from end to end: the lists of passes (the map), what a compilation can be told, and the driver that walks down the lists."""
