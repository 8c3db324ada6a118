"""Numbers looked up in a table, `LANES` at once.

A table of two vectors stays in registers: there `pick` takes numbers out of it. A longer table is in memory.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils
from numba.core.codegen import get_host_cpu_features

from iclab.kernels.compiling import SETTINGS
from iclab.kernels.vectors import LANES, Vector, numbers, written_out


def _piece() -> int:
    """Numbers that one instruction of this processor rearranges; 0 where LLVM knows none."""
    features = (SETTINGS.CPU_FEATURES or get_host_cpu_features()).split(",")
    return 16 if "+avx512f" in features else 8 if "+avx2" in features else 0


PIECE = _piece()
WIDEST = 2 * LANES if PIECE else 0
"""Entries of a table, in single precision, that `pick` finds faster than loads from memory."""


@written_out
def pick(typing, table, index):
    """`table[index]`, lane by lane, where a table is two vectors, one after the other.

    Numbers are taken out of one register in the order that another gives. Where the processor has an instruction for
    this, LLVM finds it, if all is in one block: that is why the table is not any number of vectors in a loop.
    """
    def build(context, builder, sig, args):
        halves, index = cgutils.unpack_tuple(builder, args[0]), args[1]
        size, word = PIECE or LANES, ir.IntType(32)

        def cut(vector, first):
            return builder.shuffle_vector(vector, vector, numbers(range(first, first + size)))

        def rearranged(numbers, order):
            result = ir.Constant(numbers.type, ir.Undefined)
            for i in range(size):
                at = builder.extract_element(order, word(i))
                result = builder.insert_element(result, builder.extract_element(numbers, at), word(i))
            return result

        pieces = [cut(half, first) for half in halves for first in range(0, LANES, size)]
        results = []
        for first in range(0, LANES, size):
            order = cut(index, first)
            within = builder.and_(order, numbers([size - 1] * size))
            result = rearranged(pieces[0], within)
            for k, piece in enumerate(pieces[1:], 1):
                behind = builder.icmp_signed(">=", order, numbers([k * size] * size))
                result = builder.select(behind, rearranged(piece, within), result)
            results.append(result)
        return results[0] if len(results) == 1 else builder.shuffle_vector(*results, numbers(range(LANES)))

    return table.dtype(table, index), build


@written_out
def gathered(typing, array, index):
    """`array[index]`, lane by lane."""
    def build(context, builder, sig, args):
        array, index = args
        data = context.make_array(sig.args[0])(context, builder, array).data
        result = ir.Constant(context.get_value_type(sig.return_type), ir.Undefined)
        for i in range(LANES):
            entry = builder.load(builder.gep(data, [builder.extract_element(index, ir.IntType(32)(i))]))
            result = builder.insert_element(result, entry, ir.IntType(32)(i))
        return result

    return Vector(array.dtype)(array, index), build
