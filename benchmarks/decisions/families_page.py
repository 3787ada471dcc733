"""The table and the page of load families, from the runs in their JSON alone."""

from collections.abc import Iterable, Sequence

from benchmarks.command import aged, table
from benchmarks.decisions.document import Document, runs_in
from benchmarks.decisions.family_draws import FIRST_TUNING_SEED, SIMPLE_SCALERS, purpose_of
from benchmarks.decisions.family_standings import (
    MOST_TO_CHEAPEST,
    MOST_TO_CHEAPEST_WITH_DAILY,
    MOST_TO_FIXED,
    FamilySummary,
    family_summaries,
    worst_draws,
)
from benchmarks.decisions.load_families import LOAD_FAMILIES
from benchmarks.decisions.page import held, ratio
from benchmarks.decisions.worlds import ALL_WORLDS

WORST_DRAWS = 10

PAGE = """# Families of loads

Loads that nobody chose: six families of change, each with and without a daily shape, every parameter drawn from a seed.
All of this page is written from one JSON document, and that by one command:

    python -m benchmarks.decisions.families --draws {draws} --hindsight --out FILE
    python -m benchmarks.decisions.families --page FILE

{families}
A daily shape is one smooth peak a day that multiplies the load: its hour, its width and its height are drawn. Each load
lasts for three days; the last one is judged, and lagcast's history are the two before it. Scale, prices and the plant
are those of `make bench-decisions`; all begin with 40 replicas. The simple scalers are {scalers}; the *cheapest* one is
that of the least mean cost over the draws of a family, chosen afterwards.

**Seeds.** {seeds}, for {purpose}. Seeds below {first_tuning} are for reporting, and nothing is chosen on them; those
from {first_tuning} on are for tuning.

## Cost by family

Ratios are those of mean costs over the draws; the worst is that of one draw. The bars: at most {cheapest:g} times the
cheapest simple scaler without a daily shape and {daily:g} with one, at most {fixed:g} times the fixed ceiling. What
misses its bar is marked. KEDA's moves are those of its cheapest threshold.

{table}
## Worst draws

{worst}
## Worlds

Draws take turns in these worlds.

{worlds}"""


def family_table(summaries: Iterable[FamilySummary]) -> str:
    """A line for each family without and with a daily shape."""
    head = (
        *("load", "cheapest simple scaler", "draws", "lagcast", "/ cheapest", "worst", "/ fixed", "worst"),
        *("/ hindsight", "moves", "KEDA's moves"),
    )
    rows = [
        (
            *(each.load, each.cheapest, str(len(each.draws)), f"{each.cost:.2f}"),
            *(held(each.to_cheapest, each.most_to_cheapest), ratio(each.worst_to_cheapest)),
            *(held(each.to_fixed, MOST_TO_FIXED), ratio(each.worst_to_fixed), ratio(each.to_hindsight)),
            *(f"{each.moves:.0f}", f"{each.keda_moves:.0f}"),
        )
        for each in summaries
    ]
    return table(head, rows, words=2)


def families_page(document: Document) -> str:
    """The page."""
    runs = runs_in(document, "runs")
    summaries = family_summaries(runs)
    played = sorted({run.seed for run in runs})
    worlds = {run.world for run in runs}
    page = PAGE.format(
        families=table(
            ("family", "what it is"), [(name, each.sentence) for name, each in LOAD_FAMILIES.items()], words=2
        ),
        scalers=", ".join(f"`{name}`" for name in SIMPLE_SCALERS),
        draws=len(played),
        seeds=f"{played[0]} to {played[-1]}",
        purpose=purpose_of(range(played[0], played[-1] + 1)),
        first_tuning=FIRST_TUNING_SEED,
        cheapest=MOST_TO_CHEAPEST,
        daily=MOST_TO_CHEAPEST_WITH_DAILY,
        fixed=MOST_TO_FIXED,
        table=family_table(summaries),
        worst=_worst(summaries),
        worlds=table(
            ("world", "what it is"),
            [(name, kind.sentence) for name, kind in ALL_WORLDS.items() if name in worlds],
            words=2,
        ),
    )
    return aged(page, document)


def _worst(summaries: Sequence[FamilySummary]) -> str:
    cheapest = {each.load: each.cheapest for each in summaries}
    rows = [
        (draw.load, draw.world, cheapest[draw.load], str(draw.seed), ratio(draw.to_cheapest), ratio(draw.to_fixed))
        for draw in worst_draws(summaries, WORST_DRAWS)
    ]
    return table(("load", "world", "cheapest simple scaler", "seed", "/ cheapest", "/ fixed"), rows, words=3)
