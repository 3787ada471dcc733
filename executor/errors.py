"""Errors of the outside world; each message is one sentence with the next step."""


class OutsideError(Exception):
    """The API or the cluster failed us."""


class AdviceError(OutsideError):
    """The API does not answer, or answers something else than advice."""


class ScaleError(OutsideError):
    """The cluster does not let the workload be read or scaled."""


class ScaleConflictError(ScaleError):
    """The workload changed between the reading and the patch; nothing was set."""
