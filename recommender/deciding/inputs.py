"""DecisionInputs: the arguments of one call of `recommend`, kept so that the call can be repeated."""

from dataclasses import dataclass
from datetime import datetime

from cost_model.physics.learned import Learned
from cost_model.physics.profile import GroupProfile
from forecasting.forecast import Forecast
from forecasting.history import History, PackedHistory
from forecasting.refusal import Refusal
from recommender.deciding.decision import DecisionSettings
from recommender.deciding.hold import Hold
from recommender.deciding.recommend import recommend
from recommender.deciding.recommendation import Decision, Recommendation, SensitivityOf, TrackRecord


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecisionInputs:
    """Everything that one decision was made from, as `recommend` takes it.

    Nothing in it changes, so that any thread may read it. The history is packed: keeping it copies nothing.
    """

    history: PackedHistory
    forecast: Forecast | Refusal
    profile: GroupProfile
    settings: DecisionSettings
    previous: Recommendation | None
    now: datetime
    learned: Learned | None = None
    hold: Hold | None = None
    fallback_replicas: int | None = None
    track_record: TrackRecord | None = None

    def decide(self, *, sensitivity: SensitivityOf = "none", history: History | None = None) -> Decision:
        """The decision from these inputs: the same at each call. `history` saves unpacking it again."""
        return recommend(
            self.history.unpacked() if history is None else history,
            self.forecast,
            self.profile,
            self.settings,
            previous=self.previous,
            now=self.now,
            learned=self.learned,
            hold=self.hold,
            fallback_replicas=self.fallback_replicas,
            track_record=self.track_record,
            sensitivity=sensitivity,
        )
