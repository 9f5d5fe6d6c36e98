"""How alembic reaches the store: through the connection that `store.migrate` opened."""

from alembic import context

from runyard.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot change a table in place
    transactional_ddl=False,  # the caller holds the transaction, so that a failed upgrade leaves nothing behind
)
context.run_migrations()
