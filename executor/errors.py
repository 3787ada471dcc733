"""Errors of the outside world; each message is one sentence with the next step."""


class OutsideError(Exception):
    """The API or the cluster failed."""


class AdviceError(OutsideError):
    """The API does not answer, or its answer is not advice."""


class PortError(OutsideError):
    """The port of the metrics cannot be used."""


class ScaleError(OutsideError):
    """The cluster refuses to read or scale the workload."""


class ScaleConflictError(ScaleError):
    """The workload changed between the reading and the patch; nothing was set."""
