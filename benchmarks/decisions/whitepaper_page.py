"""The part of the page that regenerates a published comparison, beside the fair one."""

from benchmarks.decisions.ours import COLD, LAGCAST
from benchmarks.decisions.standings import FIXED, Mean, ScenarioSummary, mean_of, standing_of, summaries_of
from benchmarks.decisions.tournament import Run
from benchmarks.decisions.whitepaper import CARRYING_THE_PEAK, PUBLISHED, published_figures
from replay.hindsight import HINDSIGHT

# The HPA of the white paper: its target, and the comparison of its tolerance in 2019.
HPA = "hpa-2019"

INTRODUCTION = """## A published comparison, regenerated

A white paper of 2019 (Federator.ai, ProphetStor) reports {replicas:+.0%} consumers against 40 over-provisioned ones and
{lag:+.2%} mean lag against an HPA at a target of 10,000, on 40 partitions. What one consumer could do is not published,
nor are the HPA's manifest, the number of runs, their length or the versions; without the capacity the first figure says
nothing. So each of three capacities is played, on a twin of the load (its shape and size, not its values): ten minutes
high, ten low, 144 minutes at 20,000 to 120,000 messages a minute in six bursts a minute, from 40 consumers on,
{seeds} draws each. Members are static with a session of 30 s and have new ids, as in the vendor's later demo; pods are
ready after 30 s. lagcast knows two days of other lists of the same kind, lagcast-cold nothing. The published times per
message are not repeated: they do not go together with the published lag at any rate that the load has.
"""


def whitepaper_section(runs: list[Run]) -> str:
    """The two published figures for each capacity, and the policy that was cheaper."""
    scenarios = {scenario.world: scenario for scenario in summaries_of(runs)}
    seeds = max(scenario.seeds for scenario in scenarios.values())
    introduction = INTRODUCTION.format(
        replicas=PUBLISHED.replicas_fraction, lag=PUBLISHED.lag_messages_fraction, seeds=seeds
    )
    parts = [introduction, _published(runs)]
    parts += [_fair(scenarios[str(count)], count) for count in CARRYING_THE_PEAK if str(count) in scenarios]
    return "\n".join(parts)


def _published(runs: list[Run]) -> str:
    lines = [
        "| consumers that just carry the peak | policy | consumers against 40 | mean lag against HPA 10,000 |",
        "|---|---|---:|---:|",
        f"| unknown | as published | {PUBLISHED.replicas_fraction:+.1%} | {PUBLISHED.lag_messages_fraction:+.2%} |",
    ]
    for count in CARRYING_THE_PEAK:
        by_seed = {(run.seed, run.policy): run for run in runs if run.world == str(count)}
        for who in (LAGCAST, COLD):
            figures = [
                published_figures(
                    mean_replicas=ours.mean_replicas,
                    mean_lag_messages=ours.mean_lag_messages,
                    hpa_mean_lag_messages=by_seed[seed, HPA].mean_lag_messages,
                )
                for (seed, policy), ours in by_seed.items()
                if policy == who and (seed, HPA) in by_seed
            ]
            if figures:
                replicas = mean_of([figure.replicas_fraction for figure in figures])
                lag = mean_of([figure.lag_messages_fraction for figure in figures])
                lines.append(f"| {count} | {who} | {_percent(replicas, 1)} | {_percent(lag, 2)} |")
    return "\n".join(lines) + "\n"


def _fair(scenario: ScenarioSummary, count: int) -> str:
    policies = dict.fromkeys((FIXED, HPA, scenario.best_rival, LAGCAST, COLD, HINDSIGHT))
    lines = [
        f"### {count} consumers just carry the peak",
        "",
        (
            f"The best rival, chosen afterwards with all targets swept, is `{scenario.best_rival}`; lagcast costs "
            f"{scenario.cost_to_best_rival:.3f} times as much, and {scenario.cost_to_hindsight:.3f} times as much as "
            "hindsight."
        ),
        "",
        "| policy | cost | mean consumers | mean lag | wait p95 | late | rebalances |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for policy in policies:
        if any(standing.policy == policy for standing in scenario.standings):
            it = standing_of(scenario, policy)
            lines.append(
                f"| {policy} "
                f"| {it.cost.mean:.2f}{'' if it.cost.half_width is None else f' +/- {it.cost.half_width:.2f}'} "
                f"| {it.mean_replicas:.1f} | {it.mean_lag_messages:,.0f} | {it.wait_p95:,.1f} s | {it.late_share:.2%} "
                f"| {it.rebalances:,.0f} |"
            )
    return "\n".join(lines) + "\n"


def _percent(mean: Mean, digits: int) -> str:
    half_width = "" if mean.half_width is None else f" +/- {mean.half_width:.{digits}%}"
    return f"{mean.mean:+.{digits}%}{half_width}"
