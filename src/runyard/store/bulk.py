"""Many rows in one statement."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Insert, String, Table, bindparam, cast, column, func, insert, select
from sqlalchemy.dialects.postgresql import JSON

TOGETHER = 100  # rows in one text: PostgreSQL takes none above a gigabyte, and a run may have some megabytes

_one_by_one = functools.cache(insert)


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """In this order; all have the same columns. In SQLite, in the same process, they are inserted one by one."""
    if connection.dialect.name == "postgresql":
        for start in range(0, len(rows), TOGETHER):
            some = rows[start : start + TOGETHER]
            # Characters as they are: a database that is not in UTF-8 cannot read them as escapes.
            connection.execute(_at_once(table, tuple(some[0])), {"rows": json.dumps(some, ensure_ascii=False)})
    elif rows:
        connection.execute(_one_by_one(table), rows)


@functools.cache
def _at_once(table: Table, names: tuple[str, ...]) -> Insert:
    """As one JSON text: passing dozens of values for each row costs more than storing them."""
    given = func.json_to_recordset(cast(bindparam("rows", type_=String), JSON))
    columns = [column(name, table.c[name].type) for name in names]
    rows = given.table_valued(*columns, name="given").render_derived(with_types=True)
    return insert(table).from_select(list(names), select(*(rows.c[name] for name in names)))
