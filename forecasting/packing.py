"""Arrays that are kept for long and read seldom, in less memory, to the last bit.

Numbers of one series are alike in their first bytes, and differ in their last ones: the first bytes of all of them,
then the second ones, and so on, are shortened well. A noisy produce rate keeps three of its four bytes, a count of
members that seldom changes nearly none.
"""

from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def pack(values: NDArray[Any]) -> bytes:
    """The array, of any shape and type but objects, in few bytes.

    >>> members = np.array([8.0] * 700 + [10.0] * 20, dtype=np.float32)
    >>> len(pack(members)) < members.nbytes // 20
    True
    """
    planes = np.ascontiguousarray(values).view(np.uint8).reshape(values.size, values.itemsize).T
    shortened: bytes = _codec().compress(planes.tobytes(), asbytes=True)
    return shortened


def unpack(shortened: bytes, *, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """The array of this type and shape that was packed.

    >>> unpack(pack(np.array([1.5, np.nan, -0.0])), dtype=np.float64, shape=(3,))
    array([ 1.5,  nan, -0. ])
    """
    each, size = np.dtype(dtype), prod(shape)
    planes = np.frombuffer(_codec().decompress(shortened, size * each.itemsize, asbytes=True), np.uint8)
    return np.ascontiguousarray(planes.reshape(each.itemsize, size).T).view(each).reshape(shape)


@cache
def _codec() -> Any:  # noqa: ANN401  # Arrow ships no types
    # Loading it takes a tenth of a second and 25 MB, which a process whose histories are young does without.
    # LZ4 unpacks four weeks of a noisy rate in 0.3 ms, Zstandard in 0.9 for a tenth fewer bytes.
    from pyarrow import Codec  # type: ignore[import-untyped]  # noqa: PLC0415  # as above

    return Codec("lz4_raw")
