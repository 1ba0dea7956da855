"""Bounds and steps that all sizes share; every number is in MiB."""

from __future__ import annotations

import math

GIB = 1024
# Up to here a JVM addresses its heap with half the bits; from there on it holds less until it has 38 GiB.
MOST_COMPRESSED, LEAST_WIDE = 31 * GIB, 38 * GIB


def clamp(value: float, least: float, most: float) -> float:
    """Keep a value between two bounds."""
    return min(max(value, least), most)


def nearest(value: float) -> int:
    """Round to the nearest whole number, a half up (Python's own ``round`` takes the even one)."""
    return math.floor(value + 0.5)


def step(size: float) -> int:
    """Return the step of a size: 16 MiB below 1 GiB, 64 below 16 GiB, 256 above.

    A fact that differs by a few MiB after a kernel's update must not change a file: a changed size is a
    restart.
    """
    return 16 if size < GIB else 64 if size < 16 * GIB else 256


def compressed(heap: float) -> float:
    """Keep a heap out of the range in which it would hold less than one of 31 GiB."""
    return MOST_COMPRESSED if MOST_COMPRESSED < heap < LEAST_WIDE else heap


def down(size: float) -> int:
    """Round a size down to its step; what remains is page cache and is not given out again."""
    return int(size // step(size) * step(size))
