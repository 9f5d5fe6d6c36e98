"""Tables with a header line, as Lightning and Keras write them: rows are appended, or the file is written anew with
more columns and all the rows that it had."""

import csv
from typing import Dict, List, Optional

from . import tail
from .points import STEPS, Number, Points, from_fields

_SEPARATORS = ",;\t"

Row = Dict[str, Number]


class TableReader:
    def __init__(self, file: tail.Tail, must_have_step: bool, header: bytes = b"") -> None:
        """`must_have_step`: a table without a step is other data. `header`: of a table that is read from its middle."""
        self._file = file
        self._must_have_step = must_have_step
        self._columns: Optional[List[str]] = None
        self._separator = ","
        self._first: Optional[Row] = None  # of the reported rows, the first and the last one
        self._last: Optional[Row] = None
        self._told = 0
        self._to_pass = 0  # rows of a rewritten file that seem to be those already reported
        self._is_ours = True
        self.more = False
        if header:
            self._take_header(self._cells(header))

    def read(self, is_last: bool) -> Points:
        self.more = False
        lines = self._file.lines(is_last) if self._is_ours else []
        if lines is None:
            self._is_ours = False
        if not self._is_ours or not lines:
            return []
        if self._file.was_rewritten:
            self._begin_again()
        points: Points = []
        for line in lines:
            self._take(self._cells(line), points)
        self.more = self._is_ours and not self._file.is_at_end
        return points

    def _begin_again(self) -> None:
        self._columns, self._is_ours = None, True
        self._to_pass = self._told

    def _take(self, cells: List[str], points: Points) -> None:
        if not cells:
            return
        if self._columns is None or (all(cells) and _is_header(cells)):
            self._take_header(cells)
        elif self._is_ours:
            row = _numbers(self._columns, cells)
            if row and not self._is_told(row):
                self._told += 1
                self._first = self._first or row
                self._last = row
                points.append(from_fields(row))

    def _take_header(self, cells: List[str]) -> None:
        names = [cell.strip() for cell in cells]
        plain = {name.lower().replace(" ", "_") for name in names}
        self._is_ours = _is_header(cells) and bool(plain.intersection(STEPS) or not self._must_have_step)
        self._columns = names

    def _is_told(self, row: Row) -> bool:
        """Compares the first and the last one. Where one of them is another, the file holds a new training."""
        if not self._to_pass:
            return False
        expected = self._first if self._to_pass == self._told else self._last if self._to_pass == 1 else None
        self._to_pass -= 1
        if expected is None or _contains(row, expected):
            return True
        self._told, self._to_pass, self._first = 0, 0, None
        return False

    def _cells(self, line: bytes) -> List[str]:
        text = line.decode("utf-8-sig", "replace")
        if self._columns is None:
            self._separator = max(_SEPARATORS, key=text.count)
        try:
            return next(csv.reader([text.replace("\0", "")], delimiter=self._separator), [])
        except csv.Error:
            return []


def _is_header(cells: List[str]) -> bool:
    """A column may have no name: pandas leaves out that of its index."""
    return any(cells) and all(_float(cell) is None for cell in cells)


def _numbers(columns: List[str], cells: List[str]) -> Row:
    """Empty ones are left out: most of a row is, where each of several loggers has columns of its own."""
    found = {}
    for column, cell in zip(columns, cells):  # noqa: B905 (Python 3.6 has no `strict`)
        value = _float(cell) if cell else None
        if column and value is not None:
            found[column] = value
    return found


def _float(cell: str) -> Optional[float]:
    try:
        return float(cell)
    except ValueError:
        return None


def _contains(row: Row, expected: Row) -> bool:
    return all(name in row and repr(row[name]) == repr(value) for name, value in expected.items())  # NaN is itself
