"""The SQL database of a store: its connections and their time limits, its schema, and its errors as the port has them.

Opening it updates the schema. SQLite, or PostgreSQL for several replicas.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from recommender.ports import RejectedError, UnavailableError

# A writer waits for another one; a commit takes milliseconds, so that half a minute means a hang.
_LOCK_TIMEOUT_SECONDS = 30
# A database that is away is told within a cycle: to connect takes milliseconds, and so does an answer of the network.
_CONNECT_TIMEOUT_SECONDS = 5
_SILENCE_SECONDS = 10
# Connections of one store at most: those who wait longer for one than this are told so.
_CONNECTIONS = 5
_CONNECTION_TIMEOUT_SECONDS = 5.0
_MIGRATED_WITHIN_SECONDS = 3600.0
# A process that is frozen in a transaction keeps its locks; PostgreSQL releases them after this time, which is no
# longer than the time between the end of one recommender's lead and the beginning of another's.
_ABANDONED_AFTER_SECONDS = 5


class Database:
    """One database of decisions, with five connections of its own. Safe to share between threads."""

    def __init__(self, url: str) -> None:
        """Open it, creating missing tables. Errors: UnavailableError, RejectedError."""
        self.engine = _engine(url)
        self._name = self.engine.url.render_as_string(hide_password=True)
        with self._translated_errors("open"), self.engine.connect() as connection:
            _migrate(connection)

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection until the block ends. Errors: UnavailableError, RejectedError."""
        with self._translated_errors("read"), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, action: str) -> Iterator[sa.Connection]:
        """A transaction that is committed at the end of the block; `action` stands in its errors."""
        with self._translated_errors(action), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def _translated_errors(self, action: str) -> Iterator[None]:
        """Translate the library's errors into the port's, naming the store and the action."""
        try:
            yield
        except DBAPIError as cause:
            passing = isinstance(cause, OperationalError | IntegrityError) or cause.connection_invalidated
            message = f"could not {action} the decision store {self._name}: {cause.orig}"
            raise (UnavailableError if passing else RejectedError)(message) from cause
        except PoolTimeoutError as cause:
            waited = f"all {_CONNECTIONS} connections were in use for {_CONNECTION_TIMEOUT_SECONDS:g} s"
            message = f"could not {action} the decision store {self._name}: {waited}; ask again, or with fewer at once"
            raise UnavailableError(message) from cause
        except CommandError as cause:
            message = f"the decision store {self._name} was written by a newer lagcast ({cause}); install that version"
            raise RejectedError(message) from cause
        except SQLAlchemyError as cause:
            message = f"could not {action} the decision store {self._name}: {cause}"
            raise RejectedError(message) from cause


def _engine(url: str) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        is_sqlite = parsed.get_backend_name() == "sqlite"
        waits = {"lock_timeout": _LOCK_TIMEOUT_SECONDS, "idle_in_transaction_session_timeout": _ABANDONED_AFTER_SECONDS}
        arguments: dict[str, Any] = {"timeout": _LOCK_TIMEOUT_SECONDS}
        if not is_sqlite:
            arguments = {
                "options": " ".join(f"-c {name}={seconds}s" for name, seconds in waits.items()),
                "connect_timeout": _CONNECT_TIMEOUT_SECONDS,
                "keepalives_idle": _SILENCE_SECONDS,
                "tcp_user_timeout": _SILENCE_SECONDS * 1000,
            }
        engine = sa.create_engine(parsed, connect_args=arguments, **_pool(parsed))
    except (SQLAlchemyError, ImportError) as cause:
        message = (
            f"the store URL does not open a database: {cause}; give one such as sqlite:////var/lib/lagcast/decisions.sqlite"
            ", or postgresql+psycopg://USER@HOST/DATABASE with pip install 'lagcast[postgres]'"
        )
        raise RejectedError(message) from cause
    if is_sqlite:
        if parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        sa.event.listen(engine, "connect", _prepare_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    elif engine.dialect.driver == "psycopg":
        sa.event.listen(engine, "do_connect", _connect_postgres)
    return engine


def _pool(url: sa.URL) -> dict[str, Any]:
    """The options of the pool; a database in memory has its one connection, and no pool."""
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        return {}
    # A connection of before a restart of the database is replaced, and not used.
    return {
        "pool_pre_ping": True,
        "pool_size": _CONNECTIONS,
        "max_overflow": 0,
        "pool_timeout": _CONNECTION_TIMEOUT_SECONDS,
    }


def _prepare_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401  # the driver's own connection
    # The driver's own transactions would leave DDL outside of them; ours begin explicitly below.
    connection.isolation_level = None
    # Readers never wait for the writer, nor the writer for readers; commits still reach the disk (synchronous=FULL).
    connection.execute("PRAGMA journal_mode=WAL")


def _connect_postgres(_dialect: object, _record: object, words: Sequence[Any], named: Mapping[str, Any]) -> object:
    from recommender.adapters.store_postgres import Connection  # noqa: PLC0415  # psycopg is an extra

    return Connection.connect(*words, **named)


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(str(connection.get_execution_options().get("begin_with", "BEGIN")))


def _migrate(connection: sa.Connection) -> None:
    if connection.dialect.driver == "psycopg":
        # It may rewrite a large table. The connection is closed afterwards, and its patience ends with it.
        connection.connection.driver_connection.answer_seconds = _MIGRATED_WITHIN_SECONDS  # type: ignore[union-attr]  # ours
        connection.detach()
    # Two processes that open a new file at once must not both create the table: the second one waits, then finds it.
    connection = connection.execution_options(begin_with="BEGIN IMMEDIATE")
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    with connection.begin():
        command.upgrade(config, "head")
