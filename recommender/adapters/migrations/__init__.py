"""The store's schema, one revision a file; `env` is run by Alembic, nothing here is imported by anybody."""
