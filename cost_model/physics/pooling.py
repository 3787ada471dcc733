"""Pooling: one prior from the lessons of many groups of the same kind."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median

from cost_model.physics.learned import Learned
from cost_model.physics.similar import GroupKind, SimilarGroups

# With three groups the median is a group that another one agrees with, or lies between: one outlier decides nothing.
LEAST_GROUPS = 3
# Times that differ by less from those of before stay as they were. The median of ten groups changes with each of their
# moves, and every group of the kind would play its day of shadows again: 1,000 groups for a minute.
LEAST_CHANGE = 0.1


def pooled(lessons: Iterable[Learned]) -> SimilarGroups | None:
    """The medians of what groups of one kind have learned from their own moves; None where fewer than three have.

    Only groups whose own moves outweigh their priors count, and only with what they have measured themselves, so that
    no group hands back what it was given. The order does not matter.
    """
    measured = [learned for learned in lessons if learned.similar is None and learned.source == "measured"]
    pauses = [pause for learned in measured if (pause := learned.own_pauses_seconds) is not None]
    if len(pauses) < LEAST_GROUPS:
        return None
    return SimilarGroups(
        groups=len(pauses),
        pause_scale_out_seconds=median(up for up, _ in pauses),
        pause_scale_in_seconds=median(down for _, down in pauses),
        risk_share=_median([each.risk / each.risk_prior for each in measured if each.risk_prior > 0.0]) or 1.0,
        ungraceful_share=_median([each.ungraceful_share for each in measured if each.ungraceful_share is not None]),
        start_up_seconds=_median([each.start_up_seen.value for each in measured if each.start_up_seen is not None]),
    )


def pooled_by_kind(lessons: Iterable[tuple[GroupKind, Learned]]) -> dict[GroupKind, SimilarGroups | None]:
    """What the groups of each kind have taught together: `pooled` for every kind among `lessons`."""
    of_kind: dict[GroupKind, list[Learned]] = {}
    for kind, learned in lessons:
        of_kind.setdefault(kind, []).append(learned)
    return {kind: pooled(each) for kind, each in of_kind.items()}


def steadied(
    found: Mapping[GroupKind, SimilarGroups | None], *, before: Mapping[GroupKind, SimilarGroups | None]
) -> dict[GroupKind, SimilarGroups | None]:
    """What groups of each kind have taught, with the times of `before` where these differ by less than a tenth."""
    return {kind: now if now is None else _steadied(now, before.get(kind)) for kind, now in found.items()}


def _steadied(now: SimilarGroups, before: SimilarGroups | None) -> SimilarGroups:
    if before is None:
        return now
    start_up = now.start_up_seconds
    if start_up is not None and before.start_up_seconds is not None:
        start_up = _kept(start_up, before.start_up_seconds)
    return replace(
        now,
        pause_scale_out_seconds=_kept(now.pause_scale_out_seconds, before.pause_scale_out_seconds),
        pause_scale_in_seconds=_kept(now.pause_scale_in_seconds, before.pause_scale_in_seconds),
        start_up_seconds=start_up,
    )


def _kept(now: float, before: float) -> float:
    return before if abs(now - before) < LEAST_CHANGE * before else now


def _median(values: Sequence[float]) -> float | None:
    return median(values) if len(values) >= LEAST_GROUPS else None
