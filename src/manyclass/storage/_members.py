"""Checks of the arrays in a stored model, from their headers and index arrays.

numpy and scipy trust these: a header may declare more than there is, or a type whose elements are
addresses, and a sparse matrix may have indices outside of its shape.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import issparse

from manyclass.storage._forms import Refused

SIMPLE = "biufcSUmM"
"""Kinds of elements that are plain values."""
OF_SPARSE = frozenset({"indices", "indptr", "format", "shape", "data", "_is_array"})
"""Members of a sparse matrix that scipy has stored by rows or by columns."""


def check_member(name: str, data: bytes, node: dict[str, Any], most: int, *, records: bool) -> None:
    """Raise :class:`Refused` if a member is not what its node says, or unpacks to too much.

    ``most`` is the number of bytes that it may unpack to. ``records`` allows arrays of records, as
    in the trees of scikit-learn.
    """
    loader = node["__loader__"]
    if loader == "NdArrayNode" or name.endswith(".npy"):
        check_npy(name, data, records=records)
    elif loader == "SparseMatrixNode":
        _check_npz(name, data, most)


def check_npy(name: str, data: bytes, *, records: bool = False) -> None:
    """Check the header of an array."""
    file = io.BytesIO(data)
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(file)
    except ValueError as error:
        raise Refused(f"{name} is not an array ({error})") from error
    if not (_is_simple(dtype) or (records and _is_record(dtype))):
        raise Refused(f"{name} holds elements of type {dtype.str}, which are not plain values")
    size = dtype.itemsize
    for length in shape:
        size *= length
    if min(shape, default=0) < 0 or size != len(data) - file.tell():
        raise Refused(f"{name} declares {size:,} bytes, but has {len(data) - file.tell():,}")


def _is_simple(dtype: np.dtype) -> bool:
    """Tell whether elements are plain values."""
    return dtype.kind in SIMPLE and dtype.subdtype is None


def _is_record(dtype: np.dtype) -> bool:
    """Tell whether elements are records of plain values, none of them outside of its record."""
    fields = [] if dtype.fields is None else list(dtype.fields.values())
    inside = all(0 <= f[1] <= dtype.itemsize - f[0].itemsize for f in fields)
    return bool(fields) and inside and all(_is_simple(f[0]) for f in fields)


def _check_npz(name: str, data: bytes, most: int) -> None:
    """Check an archive inside the archive, which holds the parts of a sparse matrix."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except Exception as error:
        raise Refused(f"{name} is not a sparse matrix: {error}") from error
    with archive:
        members = archive.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        if len(set(names)) < len(names) or not OF_SPARSE - {"_is_array"} <= set(names) <= OF_SPARSE:
            raise Refused(f"{name} is not a sparse matrix by rows or columns")
        if sum(member.file_size for member in members) > most:
            raise Refused(f"{name} would unpack to more bytes than the whole model may have")
        for member in members:
            check_npy(f"{name}/{member.filename}", archive.read(member))


def check_sparse(matrix: Any) -> None:
    """Check a sparse matrix by rows or columns. scipy skips its indices if the last bound is 0."""
    if not issparse(matrix) or matrix.format not in ("csr", "csc"):
        raise Refused(f"a sparse matrix has the format {getattr(matrix, 'format', None)!r}")
    outer, inner = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    bounds, indices, data = matrix.indptr, matrix.indices, matrix.data
    fits = (
        bounds.ndim == indices.ndim == data.ndim == 1
        and bounds.dtype.kind == indices.dtype.kind == "i"
        and bounds.dtype == indices.dtype
        and data.dtype.kind in "biuf"
        and len(bounds) == outer + 1
        and len(indices) == len(data)
        and bounds[0] == 0
        and bounds[-1] == len(indices)
        and bool((bounds[:-1] <= bounds[1:]).all())
        and bool(((indices >= 0) & (indices < inner)).all())
    )
    if not fits:
        raise Refused("the indices of a sparse matrix are outside of it")
