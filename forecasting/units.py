"""The quantities lagcast computes with, as types that mypy keeps apart.

A `Messages` is rejected where a `MessagesPerSecond` is required. Inside a function body plain floats do the arithmetic;
the result is wrapped once, on return.
"""

from typing import Any, NewType

import numpy as np
from numpy.typing import NDArray

Seconds = NewType("Seconds", float)
Messages = NewType("Messages", float)
MessagesPerSecond = NewType("MessagesPerSecond", float)
Replicas = NewType("Replicas", int)
Partitions = NewType("Partitions", int)
Fraction = NewType("Fraction", float)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
# Structured rows, and the one place where an array's element type is not known to the checker.
AnyArray = NDArray[Any]

SECONDS_PER_HOUR = 3600.0
SECONDS_PER_DAY = 86_400


def read_only(values: FloatArray) -> FloatArray:
    """The same numbers behind a view that rejects writes, so that a returned value does not change.

    >>> import numpy as np
    >>> read_only(np.array([1.0])).flags.writeable
    False
    """
    view = values.view()
    view.flags.writeable = False
    return view
