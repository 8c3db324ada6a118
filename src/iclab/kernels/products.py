"""Products of small matrices whose sums stay in vector registers.

A loop in Python adds to memory: compiled, it loads and stores a row of the result for every few products, and takes
three to eight times as long as the products themselves. Here a tile of the result, `ROWS` rows of one or two vectors,
is held in registers while the whole sum runs. It is written in LLVM's instructions, which LLVM fits to any processor.

Matrices are contiguous, their rows are as long as a multiple of `COLUMNS`, and results have a multiple of `ROWS` rows:
zeros fill them up.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from iclab.kernels.compiling import compiled, kernel

ROWS, COLUMNS = 8, 16
BYTES = 64
"""Length of a vector; a processor with shorter ones uses several."""


def padded(count: int, multiple: int = COLUMNS) -> int:
    """The next multiple."""
    return -(-count // multiple) * multiple


def _tile(vectors: int, adds: bool) -> Any:
    """Compiled code for one tile: `out = left right` or, if it adds, `out += scale left right`.

    Numbers of `left` lie `left_row` apart from row to row and `left_step` along the sum, so that it may be transposed.
    """
    @intrinsic
    def tile(typing, out, at, left, left_at, left_row, left_step, right, right_at, count, scale):
        def build(context, builder, signature, arguments):
            out, at, left, left_at, left_row, left_step, right, right_at, count, scale = arguments
            real = context.get_value_type(signature.args[0].dtype)
            size = context.get_abi_sizeof(real)
            whole, vector = count.type, ir.VectorType(real, BYTES // size)
            (out, width), (left, _), (right, right_width) = (
                _start_and_width(context, builder, kind, array)
                for kind, array in zip((signature.args[0], signature.args[2], signature.args[6]), (out, left, right),
                                       strict=True))

            def place(start, index, i):
                return builder.bitcast(builder.gep(start, [builder.add(index, whole(i * vector.count))]),
                                       vector.as_pointer())

            def load(start, index, i):
                return builder.load(place(start, index, i), align=size)

            def filled(number):
                none = ir.Constant(vector, ir.Undefined)
                first = builder.insert_element(none, number, ir.IntType(32)(0))
                return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(ir.IntType(32), vector.count),
                                                                       None))

            def plus_product(total, a, b):
                return builder.fadd(total, builder.fmul(a, b, flags=("contract",)), flags=("contract",))

            zero = ir.Constant(vector, [0.0] * vector.count)
            sums = [[cgutils.alloca_once(builder, vector) for _ in range(vectors)] for _ in range(ROWS)]
            for totals in sums:
                for total in totals:
                    builder.store(zero, total)
            with cgutils.for_range(builder, count) as loop:
                begin = builder.add(right_at, builder.mul(loop.index, right_width))
                row = [load(right, begin, i) for i in range(vectors)]
                for k, totals in enumerate(sums):
                    index = builder.add(builder.mul(left_row, whole(k)), builder.mul(loop.index, left_step))
                    number = filled(builder.load(builder.gep(left, [builder.add(left_at, index)])))
                    for total, part in zip(totals, row, strict=True):
                        builder.store(plus_product(builder.load(total), number, part), total)
            for k, totals in enumerate(sums):
                begin = builder.add(at, builder.mul(width, whole(k)))
                for i, total in enumerate(totals):
                    result = builder.load(total)
                    if adds:
                        result = plus_product(load(out, begin, i), filled(scale), result)
                    builder.store(result, place(out, begin, i), align=size)
            return context.get_dummy_value()

        return types.void(out, at, left, left_at, left_row, left_step, right, right_at, count, scale), build

    return tile


def _start_and_width(context, builder, kind, array):
    """Where a matrix begins in memory, and how long its rows are."""
    matrix = context.make_array(kind)(context, builder, array)
    return matrix.data, cgutils.unpack_tuple(builder, matrix.shape)[1]


_one, _two, _add_one, _add_two = (_tile(vectors, adds) for adds in (False, True) for vectors in (1, 2))


@kernel
def product(out, rows, left, right, count):
    """`out = left right`: its first `rows` rows, the sum over the first `count` rows of `right`."""
    _products(out, rows, left, left.shape[1], 1, right, count)


@kernel
def product_transposed(out, rows, left, right, count):
    """`out = left^T right`, as in `product`."""
    _products(out, rows, left, 1, left.shape[1], right, count)


@kernel
def add_product(out, scale, left, right, count):
    """`out += scale left right`, as in `product`, with all rows."""
    width, scale = out.shape[1], out.dtype.type(scale)
    lanes = BYTES // out.itemsize
    for j in range(0, width, 2 * lanes):
        for i in range(0, out.shape[0], ROWS):
            if j + lanes < width:
                _add_two(out, i * width + j, left, i * left.shape[1], left.shape[1], 1, right, j, count, scale)
            else:
                _add_one(out, i * width + j, left, i * left.shape[1], left.shape[1], 1, right, j, count, scale)


@compiled
def _products(out, rows, left, left_row, left_step, right, count):
    width, scale = out.shape[1], out.dtype.type(1.0)
    lanes = BYTES // out.itemsize
    for j in range(0, width, 2 * lanes):
        for i in range(0, rows, ROWS):
            if j + lanes < width:
                _two(out, i * width + j, left, i * left_row, left_row, left_step, right, j, count, scale)
            else:
                _one(out, i * width + j, left, i * left_row, left_row, left_step, right, j, count, scale)


@compiled
def transpose(out, matrix):
    """`out = matrix^T`."""
    for i in range(matrix.shape[0]):
        for k in range(matrix.shape[1]):
            out[k, i] = matrix[i, k]


@compiled
def copy(out, matrix):
    """`out = matrix`, both of one shape."""
    for i in range(matrix.shape[0]):
        for k in range(matrix.shape[1]):
            out[i, k] = matrix[i, k]


@compiled
def move(weights, scale, left, right, count, rows, gradient):
    """`weights += scale left right`, the product being over a dictionary that has these rows over the axes, or none."""
    if rows.shape[0] > 0:
        product(gradient, weights.shape[0], left, right, count)
        add_product(weights, scale, gradient, rows, rows.shape[0])
    else:
        add_product(weights, scale, left, right, count)
