"""Run by Alembic, which loads this file by its path under the name `env_py`, on the connection of the store."""

from alembic import context


def run() -> None:
    """Bring the database of the given connection to the newest revision, inside that connection's transaction."""
    context.configure(connection=context.config.attributes["connection"], target_metadata=None)
    context.run_migrations()


# Any other import of this file, a test collector's for one, finds no database to migrate.
if __name__ == "env_py":
    run()
