"""The engine as a process: a run directory in; an event log, evaluation, video or thumbnail out.

    python -m workers.engine train RUN_DIR --attempt N [--resume FILE] [--control-fd FD]
    python -m workers.engine evaluate FOLDER --checkpoint PATH [--protocol ID] --episodes N --seed S
        [--starts PATH]
    python -m workers.engine video FOLDER --replay PATH --out PATH [--observed PATH] [--starts PATH]
        [--states PATH]
    python -m workers.engine game FOLDER --replay PATH --out PATH [--states PATH]
    python -m workers.engine thumbnail FOLDER (--replay PATH | --video PATH) --out PATH [--starts PATH]
    python -m workers.engine branch FOLDER --replay PATH --plan PATH --policy PATH --checkpoint PATH
        [--starts PATH] [--states PATH]
    python -m workers.engine saliency FOLDER --replay PATH --decision N --policy PATH --checkpoint PATH
        [--starts PATH] [--states PATH]
    python -m workers.engine start-set FOLDER --document PATH --out PATH
    python -m workers.engine play FOLDER --control-fd FD
    python -m workers.engine encode FOLDER --upload PATH --out PATH --form file|frames [--fps N]
    python -m workers.engine serve --requests FD

RUN_DIR, or FOLDER, holds `spec.json`; `encode`, `start-set` and `thumbnail --video` do not read it, and that
of `play` and `game` is a `PlaySetup`. The engine is killed when the process `--parent PID` ends. Exit codes:
0 done, or stopped by SIGTERM or SIGINT while training; 1 failed; 2 bad input; killed by a signal, that one's;
after a fault of the machine's disk, or if the checkpoint to resume from is damaged, as
`backend.specs.machine_faults` gives it, without a final event.

`serve` is the engine server: it loads what engines need, and forks one for each request of its worker.
"""

import sys

from workers.engine.commands import main

if __name__ == "__main__":
    sys.exit(main())
