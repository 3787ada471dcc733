"""Connections to PostgreSQL that do not wait for ever.

A server whose disk stands still, or which is paused, keeps its connections and answers nothing: its own time limits do
not run, and its kernel goes on to acknowledge what it is sent, so that no time limit of TCP is reached either.
"""

import time
from typing import TypeVar

import psycopg
from psycopg.abc import PQGen

# The server itself ends what waits for a lock after half of it; all else takes milliseconds.
ANSWER_SECONDS = 60.0

Value = TypeVar("Value")


class Connection(psycopg.Connection):
    """A connection that is closed when the server is silent; `answer_seconds` of one, so that a migration can wait."""

    answer_seconds = ANSWER_SECONDS

    def wait(self, gen: PQGen[Value], interval: float = 0.1, timeout: float | None = None) -> Value:
        """What the server answers. Errors: psycopg.OperationalError, after which the connection is closed."""
        limit = self.answer_seconds if timeout is None else timeout
        began = time.monotonic()
        try:
            return super().wait(gen, interval, limit)
        except psycopg.OperationalError as cause:
            if timeout is not None or time.monotonic() - began < limit:
                raise
            # Half a question is on its way: what would come next on this connection is the answer to it.
            self.close()
            message = f"the server has not answered for {limit:g} s"
            raise psycopg.OperationalError(message) from cause
