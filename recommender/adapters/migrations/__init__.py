"""The store's schema, one revision a file; Alembic runs `env`, and no module imports this package."""
