"""Eight samples at a time: a vector type for numba kernels.

LLVM vectorises an inner loop over samples, but it does not keep the accumulators of a matrix
factorisation in registers across the loop around it. ``Lanes`` is such a register: eight float64
with the usual arithmetic, one sample per lane. Kernels written with it look like the scalar
algorithm and use the vectors that the machine has.

``load`` and ``store`` address a flat float64 array in units of ``WIDTH``: entry
``i`` of a workspace holds the i-th number of each of the eight samples. Indices are not checked,
unless the environment sets ``NUMBA_BOUNDSCHECK=1``.
"""

from __future__ import annotations

import operator
from functools import partial

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

WIDTH = 8  # float64 numbers in 512 bits, the widest vectors of x86 processors
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_PLACES = ir.VectorType(ir.IntType(32), WIDTH)


class LanesType(types.Type):
    """The numba type of eight float64, one per sample."""

    def __init__(self):
        super().__init__(name=f"Lanes{WIDTH}")


lanes = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, numba_type):
        super().__init__(manager, numba_type, _VECTOR)


def _define_operator(python_operator, instruction):
    @infer_global(python_operator)
    class Typing(ConcreteTemplate):
        cases = [signature(lanes, lanes, lanes)]  # noqa: RUF012  (numba reads it so)

    @lower_builtin(python_operator, LanesType, LanesType)
    def lower(context, builder, sig, args):
        return getattr(builder, instruction)(*args)


for _operator, _instruction in [
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
]:
    _define_operator(_operator, _instruction)


def _check_bounds(context, builder, array_type, array, first, n):
    """Raise an ``IndexError`` if numbers ``first`` to ``first + n - 1`` are not all there."""
    if config.BOUNDSCHECK != 1:
        return
    size = context.make_array(array_type)(context, builder, array).nitems
    before = builder.icmp_signed("<", first, _index(0))
    after = builder.icmp_signed(">", builder.add(first, _index(n)), size)
    with builder.if_then(builder.or_(before, after), likely=False):
        context.call_conv.return_user_exc(builder, IndexError, ("numbers outside of an array",))


def _address(context, builder, array_type, array, index_type, index):
    data = context.make_array(array_type)(context, builder, array).data
    offset = context.cast(builder, index, index_type, types.intp)
    offset = builder.mul(offset, ir.Constant(offset.type, WIDTH))
    _check_bounds(context, builder, array_type, array, offset, WIDTH)
    return builder.bitcast(builder.gep(data, [offset]), _VECTOR.as_pointer())


@intrinsic
def load(typing, workspace, i):
    """Read the ``i``-th number of all samples."""

    def generate(context, builder, sig, args):
        value = builder.load(_address(context, builder, sig.args[0], args[0], sig.args[1], args[1]))
        value.align = 8
        return value

    return lanes(workspace, i), generate


@intrinsic
def store(typing, workspace, i, value):
    """Write the ``i``-th number of all samples."""

    def generate(context, builder, sig, args):
        address = _address(context, builder, sig.args[0], args[0], sig.args[1], args[1])
        builder.store(args[2], address).align = 8
        return context.get_dummy_value()

    return types.void(workspace, i, lanes), generate


@intrinsic
def transpose_in(typing, source, at, stride, workspace, i):
    """Read eight numbers of eight samples: entries ``i`` to ``i + 7`` of the workspace.

    The numbers of sample s are source[at + s * stride] and the seven after it.
    """

    def generate(context, builder, sig, args):
        tile = _tile(context, builder, sig.args[:3], args[:3])
        rows = [builder.load(place, align=8) for place in tile]
        for m, row in enumerate(_transposed(builder, rows)):
            index = builder.add(_as_index(context, builder, sig.args[4], args[4]), _index(m))
            place = _address(context, builder, sig.args[3], args[3], types.intp, index)
            builder.store(row, place, align=8)
        return context.get_dummy_value()

    return types.void(source, at, stride, workspace, i), generate


@intrinsic
def transpose_out(typing, workspace, i, target, at, stride):
    """Write entries ``i`` to ``i + 7`` of the workspace; the reverse of :func:`transpose_in`."""

    def generate(context, builder, sig, args):
        rows = []
        for m in range(WIDTH):
            index = builder.add(_as_index(context, builder, sig.args[1], args[1]), _index(m))
            place = _address(context, builder, sig.args[0], args[0], types.intp, index)
            rows.append(builder.load(place, align=8))
        tile = _tile(context, builder, sig.args[2:], args[2:])
        for row, place in zip(_transposed(builder, rows), tile, strict=True):
            builder.store(row, place, align=8)
        return context.get_dummy_value()

    return types.void(workspace, i, target, at, stride), generate


def _index(number):
    return ir.Constant(ir.IntType(64), number)


def _as_index(context, builder, index_type, index):
    return context.cast(builder, index, index_type, types.intp)


def _tile(context, builder, types_, args):
    """Return the addresses of eight numbers of each of eight samples."""
    data = context.make_array(types_[0])(context, builder, args[0]).data
    at, stride = map(partial(_as_index, context, builder), types_[1:], args[1:])
    places = [builder.add(at, builder.mul(stride, _index(s))) for s in range(WIDTH)]
    for place in places:
        _check_bounds(context, builder, types_[0], args[0], place, WIDTH)
    return [builder.bitcast(builder.gep(data, [q]), _VECTOR.as_pointer()) for q in places]


def _transposed(builder, rows):
    """Transpose eight vectors: exchange blocks of 1, 2 and 4 numbers between pairs of them."""
    rows = list(rows)
    for h in (1, 2, 4):
        upper = [j if not j & h else WIDTH + j - h for j in range(WIDTH)]
        lower = [j + h if not j & h else WIDTH + j for j in range(WIDTH)]
        for i in (i for i in range(WIDTH) if not i & h):
            pair = rows[i], rows[i + h]
            rows[i], rows[i + h] = (
                builder.shuffle_vector(*pair, ir.Constant(_PLACES, mask)) for mask in (upper, lower)
            )
    return rows


@intrinsic
def peek(typing, array, i):
    """Read one number of a flat array; the index is taken to be within it.

    Plain indexing allows for negative indices, which costs more than the access.
    """

    def generate(context, builder, sig, args):
        return builder.load(_address_of_one(context, builder, sig, args))

    return types.float64(array, i), generate


@intrinsic
def poke(typing, array, i, number):
    """Write one number of a flat array; see :func:`peek`."""

    def generate(context, builder, sig, args):
        builder.store(args[2], _address_of_one(context, builder, sig, args))
        return context.get_dummy_value()

    return types.void(array, i, types.float64), generate


def _address_of_one(context, builder, sig, args):
    data = context.make_array(sig.args[0])(context, builder, args[0]).data
    place = _as_index(context, builder, sig.args[1], args[1])
    _check_bounds(context, builder, sig.args[0], args[0], place, 1)
    return builder.gep(data, [place])


@intrinsic
def broadcast(typing, number):
    """Give every sample the same number."""

    def generate(context, builder, sig, args):
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        first = builder.insert_element(undefined, args[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, undefined, zeros)

    return lanes(types.float64), generate


def _call(builder, name, args):
    signature, name = ir.FunctionType(_VECTOR, [_VECTOR] * len(args)), f"llvm.{name}.v{WIDTH}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), args)


@intrinsic
def multiply_add(typing, x, y, z):
    """Return ``x * y + z``, rounded once."""

    def generate(context, builder, sig, args):
        return _call(builder, "fma", args)

    return lanes(lanes, lanes, lanes), generate


@intrinsic
def subtract_product(typing, z, x, y):
    """Return ``z - x * y``, rounded once."""

    def generate(context, builder, sig, args):
        z, x, y = args
        return _call(builder, "fma", [builder.fneg(x), y, z])

    return lanes(lanes, lanes, lanes), generate


@intrinsic
def square_root(typing, x):
    """Return the square root of each sample's number."""

    def generate(context, builder, sig, args):
        return _call(builder, "sqrt", args)

    return lanes(lanes), generate


@intrinsic
def absolute(typing, x):
    """Return the magnitude of each sample's number."""

    def generate(context, builder, sig, args):
        return _call(builder, "fabs", args)

    return lanes(lanes), generate


@intrinsic
def where_less(typing, x, y, then, otherwise):
    """Return ``then`` in the lanes where ``x < y``, else ``otherwise`` (also for NaN)."""

    def generate(context, builder, sig, args):
        x, y, then, otherwise = args
        return builder.select(builder.fcmp_ordered("<", x, y), then, otherwise)

    return lanes(lanes, lanes, lanes, lanes), generate


@intrinsic
def total(typing, x):
    """Return the sum over the samples."""

    def generate(context, builder, sig, args):
        places = [ir.Constant(ir.IntType(32), s) for s in range(WIDTH)]
        parts = [builder.extract_element(args[0], place) for place in places]
        while len(parts) > 1:
            parts = [builder.fadd(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    return types.float64(lanes), generate
