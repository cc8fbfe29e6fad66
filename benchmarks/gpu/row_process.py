"""Measures rows one after the other in this process.

    python -m benchmarks.gpu.row_process MODULE:FUNCTION ROWS --records PATH --parent PID

ROWS is a JSON list of objects with `id` and `arguments`. What the function yields is appended to PATH, a JSON
object on a line: `row`, `done`, and `record`. The process ends at the first row that fails.
"""

import argparse
import importlib
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workers.engine.processes.child import die_with_parent


def main() -> int:
    """Measure the rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("function")
    parser.add_argument("rows")
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--parent", type=int, required=True)
    args = parser.parse_args()
    die_with_parent(args.parent)
    module, _, name = args.function.partition(":")
    with args.records.open("a", encoding="utf-8") as records:

        def write(row: str, record: dict[str, Any], *, done: bool) -> None:
            records.write(json.dumps({"row": row, "done": done, "record": record}) + "\n")
            records.flush()

        for row in json.loads(args.rows):
            try:
                function: Callable[..., Iterator[dict[str, Any]]] = getattr(
                    importlib.import_module(module), name
                )
                for record in function(**row["arguments"]):
                    write(row["id"], record, done=False)
            except Exception as error:  # whatever it is, it is the row's result
                traceback.print_exc()
                write(row["id"], {"error": f"{type(error).__name__}: {error}"}, done=True)
                return 1
            write(row["id"], {}, done=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
