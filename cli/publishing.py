# ruff: noqa: PLC0415 - Kafka's client is imported when a command publishes, so that `--help` answers in 0.2 s
"""Decisions on two Kafka topics, published by every command that decides in cycles."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from cli.instants import read_clock
from cli.progress import Talk

if TYPE_CHECKING:
    from recommender.configuring.settings import InForce
    from recommender.deciding.recommendation import Decision
    from recommender.ports import Publisher

TOPICS = "lagcast.recommendations"
Publish = Annotated[
    str, typer.Option(metavar="PREFIX", help="Publish on the Kafka topics PREFIX and PREFIX.latest; '' for none.")
]

# For commands that need no broker but to publish.
OptionalBootstrap = Annotated[
    str | None,
    typer.Option("--bootstrap", metavar="HOST:PORT", help="Kafka brokers to publish on, separated by commas."),
]


@contextmanager
def publishing(
    prefix: str,
    bootstrap: str,
    connection: Mapping[str, str],
    settings: "InForce",
    *,
    talk: Talk,
    within_seconds: float | None = None,
) -> "Iterator[list[Publisher]]":
    """The publishers of the two topics, until the block ends; none if `prefix` is empty or the topics are unavailable.

    `connection` are the settings of Kafka's client. Messages that are not delivered `within_seconds` are lost.
    Errors: AdapterError if the client does not accept the settings.
    """
    if not prefix:
        yield []
        return
    from api.convert import to_wire
    from collector.client_config import without_secrets
    from recommender.adapters.publish_kafka import KafkaPublisher
    from recommender.ports import AdapterError

    def body_of(decision: "Decision") -> bytes:
        document = to_wire(decision, settings.of(decision.cluster, decision.group), now=read_clock())
        return document.model_dump_json(exclude_none=True).encode()

    topics = KafkaPublisher(
        bootstrap,
        prefix=prefix,
        body_of=body_of,
        client_config=connection,
        unshown=lambda words: without_secrets(words, connection),
        within_seconds=within_seconds,
    )
    try:
        topics.create_topics()
    except AdapterError as error:
        talk.line(f"    nothing is published on Kafka: {error}")
        yield []
        return
    talk.line(f"    decisions are published on {' and '.join(topics.topics)}")
    try:
        yield [topics]
    finally:
        topics.close()
