"""Tables in files that come from anyone: CSV or Parquet, read as pyarrow's, or refused in a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from driftformer.errors import InputError, shown


def read_table(path: Path, what: str) -> Any:
    """The table in a .csv or .parquet file; `what` is the word for it in errors."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    kind, asked = path.suffix.lower(), shown(str(path))
    if kind not in (".csv", ".parquet"):
        raise InputError(f"{what} is {asked}; give a .csv or .parquet file")
    table = None
    try:
        with path.open("rb") as file:
            start = file.read(4096)
        is_parquet = start.startswith(b"PAR1")
        if kind == ".parquet" and is_parquet:
            table = parquet.ParquetFile(path).read()
        if kind == ".csv" and b"\0" not in start and not is_parquet:
            header = start.splitlines()[0] if start.strip() else b""
            for sign in () if b"," in header else ";\t|":
                if sign.encode() in header:
                    raise InputError(f"{what} is {path.name}, whose columns are separated by {sign!r}; use commas")
            options = csv.ReadOptions(use_threads=False)  # then errors name the row
            table = csv.read_csv(path, options, convert_options=csv.ConvertOptions(strings_can_be_null=True))
        if table is not None:
            table.validate(full=True)
            _ = table.column_names  # fails if they are not UTF-8
            return table
    except UnicodeDecodeError:
        raise InputError(f"{what} is {path.name}, whose columns have names that are not UTF-8; rename them") from None
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise InputError(f"{what} is {asked}, which cannot be read: {reason}; check the file") from None
    except pa.ArrowException as error:
        raise InputError(
            f"{what} is {path.name}, which is no valid {kind} file: {str(error).splitlines()[0]}"
        ) from None
    actual = "Parquet" if is_parquet else "binary" if b"\0" in start else "not Parquet"
    raise InputError(f"{what} is {path.name}, but its content is {actual}; give it the right name")
