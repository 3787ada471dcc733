"""Arrays that are kept for long and read seldom, in less memory, to the last bit.

Numbers of one series are alike in their first bytes, and differ in their last ones: the first bytes of all of them,
then the second ones, and so on, are shortened well. A noisy produce rate keeps three of its four bytes, a count of
members that seldom changes nearly none.
"""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forecasting.units import FloatArray


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
    values: NDArray[Any] = unpack_all([shortened], dtype=dtype, shape=shape)[0]
    return values


def unpack_all(shortened: Sequence[bytes], *, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """(arrays, *shape): one or more arrays of this type and shape, each packed by itself, in a third of the time.

    >>> unpack_all([pack(np.array([1.5, 2.5])), pack(np.array([3.5, np.inf]))], dtype=np.float64, shape=(2,))
    array([[1.5, 2.5],
           [3.5, inf]])
    """
    each, size = np.dtype(dtype), prod(shape)
    of_each = [_codec().decompress(one, size * each.itemsize, asbytes=True) for one in shortened]
    planes = np.frombuffer(b"".join(of_each), np.uint8).reshape(len(of_each), each.itemsize, size)
    values = np.empty((len(of_each), size, each.itemsize), np.uint8)
    # One plane after the other, in a third of the time that the transposed array takes.
    for place in range(each.itemsize):
        values[:, :, place] = planes[:, place]
    return values.view(each).reshape(len(of_each), *shape)


class Resting:
    """An array that is changed in place, and packed while it rests.

    >>> spent = Resting(np.zeros((96, 21)))
    >>> spent.values[3, 4] = 15.0
    >>> spent.rest()
    >>> float(spent.values[3, 4])
    15.0
    """

    def __init__(self, values: FloatArray) -> None:
        self._values: FloatArray | None = values
        self._packed, self._shape = b"", values.shape

    @property
    def values(self) -> FloatArray:
        """The array itself, until `rest` is called."""
        if self._values is None:
            self._values, self._packed = unpack(self._packed, dtype=np.float64, shape=self._shape), b""
        return self._values

    def rest(self) -> None:
        """Pack the array until somebody asks for it; whoever holds it changes nothing any more."""
        if self._values is not None:
            self._packed, self._values = pack(self._values), None


@cache
def _codec() -> Any:  # noqa: ANN401  # Arrow ships no types
    # Loading it takes a tenth of a second and 25 MB, which a process whose histories are young does without.
    # LZ4 unpacks four weeks of a noisy rate in 0.3 ms, Zstandard in 0.9 for a tenth fewer bytes.
    from pyarrow import Codec  # type: ignore[import-untyped]  # noqa: PLC0415  # as above

    return Codec("lz4_raw")
