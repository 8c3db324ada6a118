"""Vectors of `LANES` numbers as values of compiled code, for loops that a compiler does not vectorise by itself.

Numba's loops over several arrays are vectorised behind tests that the arrays do not overlap, and finish their last few
entries one by one; over the twenty tokens of a prompt both cost more than the work. Here code says itself what is done
side by side: `load` and `store` move `LANES` entries of an array, operators work on them lane by lane and take a number
for one operand. All of it is plain LLVM, which fits it to any processor.

A load or a store may reach beyond the end of an array: `roomy` makes arrays that have room there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = 16
LINE = 64
"""Bytes of a line of the cache."""


def roomy(count: int, real: Any) -> np.ndarray:
    """Zeros, with room for a vector behind them, that begin where a line of the processor's cache begins."""
    memory = np.zeros(count + 2 * LANES, real)
    begin = -memory.ctypes.data % LINE // memory.itemsize
    return memory[begin:begin + count]


class Vector(types.Type):
    """`LANES` numbers of one type."""

    def __init__(self, dtype: Any):
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any):
        one = ir.IntType(1) if fe_type.dtype == types.boolean else dmm.lookup(fe_type.dtype).get_value_type()
        super().__init__(dmm, fe_type, ir.VectorType(one, LANES))


def written_out(function: Callable[..., Any]) -> Any:
    """A function of compiled code, given by its type and its instructions."""
    return intrinsic(function)


def numbers(values: Any) -> ir.Constant:
    """Whole numbers of 32 bits, side by side."""
    values = list(values)
    return ir.Constant(ir.VectorType(ir.IntType(32), len(values)), values)


def _filled(context: Any, builder: Any, kind: Any, number: Any) -> Any:
    """A vector that has this number in all lanes."""
    none = ir.Constant(context.get_value_type(kind), ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(none, number, ir.IntType(32)(0)), none, numbers([0] * LANES))


def _operands(context: Any, builder: Any, kinds: Any, values: Any) -> tuple[Any, list[Any]]:
    """The type of the vectors among two operands, and both as vectors of it."""
    vector = next(kind for kind in kinds if isinstance(kind, Vector))
    return vector.dtype, [
        value if isinstance(kind, Vector)
        else _filled(context, builder, vector, context.cast(builder, value, kind, vector.dtype))
        for kind, value in zip(kinds, values, strict=True)]


def _operator(function: Any, build: Callable[[Any, Any, Any, Any], Any], compares: bool = False) -> None:
    """Let an operator work on vectors: of one type, or a vector and a number."""
    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            found = {kind for kind in args if isinstance(kind, Vector)}
            if len(args) == 2 and len(found) == 1:
                return signature(Vector(types.boolean) if compares else found.pop(), *args)
            return None

    infer_global(function)(Template)

    def lowered(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        dtype, (left, right) = _operands(context, builder, sig.args, args)
        return build(builder, dtype, left, right)

    for kinds in ((Vector, Vector), (Vector, types.Number), (types.Number, Vector)):
        lower_builtin(function, *kinds)(lowered)


def _arithmetic(whole: str, real: str) -> Callable[[Any, Any, Any, Any], Any]:
    return lambda builder, dtype, left, right: getattr(builder, real if isinstance(dtype, types.Float) else whole)(
        left, right)


def _comparison(sign: str) -> Callable[[Any, Any, Any, Any], Any]:
    def build(builder: Any, dtype: Any, left: Any, right: Any) -> Any:
        if isinstance(dtype, types.Float):
            return (builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered)(sign, left, right)
        return (builder.icmp_signed if dtype.signed else builder.icmp_unsigned)(sign, left, right)

    return build


for _function, _whole, _real in ((operator.add, "add", "fadd"), (operator.sub, "sub", "fsub"),
                                 (operator.mul, "mul", "fmul"), (operator.and_, "and_", ""),
                                 (operator.rshift, "lshr", "")):
    _operator(_function, _arithmetic(_whole, _real))
for _function, _sign in ((operator.lt, "<"), (operator.ge, ">="), (operator.eq, "=="), (operator.ne, "!=")):
    _operator(_function, _comparison(_sign), compares=True)


@written_out
def lanes(typing):
    """0, 1, 2, ... as words."""
    return Vector(types.uint32)(), lambda context, builder, sig, args: numbers(range(LANES))


@written_out
def fill(typing, number):
    """This number in all lanes."""
    return Vector(number)(number), lambda context, builder, sig, args: _filled(context, builder, sig.return_type,
                                                                               args[0])


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any, vector: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), vector.as_pointer())


@written_out
def load(typing, array, at):
    """Entries of a contiguous array from `at` on."""
    def build(context, builder, sig, args):
        array, at = args
        vector = context.get_value_type(sig.return_type)
        return builder.load(_place(context, builder, sig.args[0], array, at, vector), align=4)

    return Vector(array.dtype)(array, at), build


@written_out
def store(typing, array, at, vector):
    """Make a vector the entries of a contiguous array from `at` on."""
    def build(context, builder, sig, args):
        array, at, vector = args
        builder.store(vector, _place(context, builder, sig.args[0], array, at, vector.type), align=4)
        return context.get_dummy_value()

    return types.void(array, at, vector), build


@written_out
def choose(typing, condition, first, second):
    """Lane by lane, the first where the condition holds, else the second; one of them may be a number."""
    vector = first if isinstance(first, Vector) else second

    def build(context, builder, sig, args):
        _, (first, second) = _operands(context, builder, sig.args[1:], args[1:])
        return builder.select(args[0], first, second)

    return vector(condition, first, second), build


@written_out
def as_numbers(typing, real, whole):
    """Whole numbers below 2^31, or one of them, as floating-point numbers of type `real`."""
    result = Vector(real.dtype) if isinstance(whole, Vector) else real.dtype
    return result(real, whole), lambda context, builder, sig, args: builder.sitofp(
        args[1], context.get_value_type(sig.return_type))


@written_out
def as_whole(typing, whole):
    """Words below 2^31, or one of them, as signed whole numbers of 32 bits."""
    if isinstance(whole, Vector):
        return Vector(types.int32)(whole), lambda context, builder, sig, args: args[0]
    return types.int32(whole), lambda context, builder, sig, args: context.cast(builder, args[0], whole, types.int32)


@written_out
def products_behind(typing, vector):
    """For every lane the product of all lanes behind it."""
    def build(context, builder, sig, args):
        ones = _filled(context, builder, sig.args[0], context.get_constant(sig.args[0].dtype, 1.0))

        def moved(vector, by):
            return builder.shuffle_vector(vector, ones, numbers(range(by, LANES + by)))

        result = moved(args[0], 1)
        for by in (1, 2, 4, 8):
            result = builder.fmul(result, moved(result, by))
        return result

    return vector(vector), build


@written_out
def first_of(typing, vector):
    """The number in the first lane."""
    return vector.dtype(vector), lambda context, builder, sig, args: builder.extract_element(args[0], ir.IntType(32)(0))


@written_out
def total(typing, vector):
    """The sum of all lanes, by halves."""
    def build(context, builder, sig, args):
        result = args[0]
        for half in (8, 4, 2, 1):
            result = builder.fadd(result, builder.shuffle_vector(result, result, numbers(
                (i + half) % LANES for i in range(LANES))))
        return builder.extract_element(result, ir.IntType(32)(0))

    return vector.dtype(vector), build
