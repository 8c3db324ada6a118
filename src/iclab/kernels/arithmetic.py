"""The arithmetic that kernels share: random words and numbers of them, and exponentials that compilers vectorise.

In single precision `exp` and `log` are polynomials (the reductions and coefficients of the Cephes library, error below
two units in the last place); in double precision they are those of the C library, which no loop vectorises, but which
tests can compare to 12 digits.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numba.extending import overload

from iclab.kernels.compiling import compiled, kernel
from iclab.kernels.vectors import as_numbers, as_whole


@compiled
def _turned(word, places):
    return np.uint32((word << np.uint32(places)) | (word >> np.uint32(32 - places)))


@compiled
def threefry(key_high, key_low, high, low):
    """Two random words for a counter, after 13 rounds, as `iclab.prompts.randomness.threefry` makes them."""
    third = np.uint32(key_high ^ key_low ^ np.uint32(0x1BD11BDA))
    x0, x1 = np.uint32(high + key_high), np.uint32(low + key_low)
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 13) ^ x0
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 15) ^ x0
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 26) ^ x0
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 6) ^ x0
    x0, x1 = np.uint32(x0 + key_low), np.uint32(x1 + third + np.uint32(1))
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 17) ^ x0
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 29) ^ x0
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 16) ^ x0
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 24) ^ x0
    x0, x1 = np.uint32(x0 + third), np.uint32(x1 + key_high + np.uint32(2))
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 13) ^ x0
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 15) ^ x0
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 26) ^ x0
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 6) ^ x0
    x0, x1 = np.uint32(x0 + key_high), np.uint32(x1 + key_low + np.uint32(3))
    x0 = np.uint32(x0 + x1)
    x1 = _turned(x1, 17) ^ x0
    return x0, x1


@compiled
def uniform16(real, bits16):
    """A number in (0, 1) from 16 bits."""
    return (as_numbers(real, bits16) + real(0.5)) * real(2.0**-16)


@compiled
def uniform23(real, word):
    """A number in (0, 1) from the upper 23 bits of a word."""
    return (as_numbers(real, word >> np.uint32(9)) + real(0.5)) * real(2.0**-23)


@compiled
def choice(bits16, count):
    """A whole number below `count` from 16 bits."""
    return as_whole((bits16 * np.uint32(count)) >> np.uint32(16))


def exp(x):
    """e^x; of a single-precision number beyond +-87 that of +-87, which is finite and not 0."""
    raise NotImplementedError("compiled code only")


@overload(exp)
def _exp(x):
    if x == types.float64:
        return lambda x: math.exp(min(x, 700.0))

    def single(x):
        x = min(max(x, np.float32(-87.0)), np.float32(87.0))
        whole = np.floor(x * np.float32(1.44269504088896341) + np.float32(0.5))
        x = x - whole * np.float32(0.693359375)
        x = x - whole * np.float32(-2.12194440e-4)
        p = np.float32(1.9875691500e-4)
        p = p * x + np.float32(1.3981999507e-3)
        p = p * x + np.float32(8.3334519073e-3)
        p = p * x + np.float32(4.1665795894e-2)
        p = p * x + np.float32(1.6666665459e-1)
        p = p * x + np.float32(5.0000001201e-1)
        p = p * x * x + x + np.float32(1.0)
        return p * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)

    return single


def log_between_1_and_2(x):
    """log x of a number from 1 to 2."""
    raise NotImplementedError("compiled code only")


@overload(log_between_1_and_2)
def _log_between_1_and_2(x):
    if x == types.float64:
        return lambda x: math.log(x)

    def single(x):
        large = x > np.float32(1.41421356)
        x = (x * np.float32(0.5) if large else x) - np.float32(1.0)
        p = np.float32(7.0376836292e-2)
        p = p * x + np.float32(-1.1514610310e-1)
        p = p * x + np.float32(1.1676998740e-1)
        p = p * x + np.float32(-1.2420140846e-1)
        p = p * x + np.float32(1.4249322787e-1)
        p = p * x + np.float32(-1.6668057665e-1)
        p = p * x + np.float32(2.0000714765e-1)
        p = p * x + np.float32(-2.4999993993e-1)
        p = p * x + np.float32(3.3333331174e-1)
        square = x * x
        log = x + (p * x * square - np.float32(0.5) * square)
        return log + (np.float32(0.69314718056) if large else np.float32(0.0))

    return single


@kernel
def exponentials(x):
    """`exp` and `log_between_1_and_2(1 + exp(-|x|))` of an array, for tests."""
    e, log = np.empty_like(x), np.empty_like(x)
    one = x.dtype.type(1.0)
    for i in range(x.shape[0]):
        e[i] = exp(x[i])
        log[i] = log_between_1_and_2(one + exp(-abs(x[i])))
    return e, log
