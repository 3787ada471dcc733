"""The compiled arithmetic of a fluid backlog, one formula for the quick loops and for all other code."""

from forecasting.compiled import compiled


@compiled
def share_late(before: float, after: float, limit: float) -> float:
    """Share of a step's messages above a limit, in waits or in backlogs, which change evenly within the step."""
    shorter, longer = min(before, after), max(before, after)
    if longer <= limit:
        return 0.0
    if shorter >= limit:
        return 1.0
    return (longer - limit) / (longer - shorter)
