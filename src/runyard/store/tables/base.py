"""Common definitions of all tables. Times are seconds since 1970 by the store's clock; JSON is stored as text and never
queried by its fields."""

from __future__ import annotations

from sqlalchemy import BigInteger, Integer, MetaData

# Names for every constraint, so that a migration can name what it changes on both databases.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)

Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite gives its fast row ids to INTEGER alone
