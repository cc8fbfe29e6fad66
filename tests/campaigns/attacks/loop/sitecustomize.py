"""On PYTHONPATH of an installation that is attacked: the web process logs callbacks of its event loop that
take long. What counts is the processor time of the loop's thread, whatever else the machine does.

It runs on asyncio's own loop: uvloop has no place where callbacks could be measured.
"""

import os
import sys

MAX_CALLBACK_S = 0.05

if "SLOW_CALLBACKS" in os.environ and "web" in sys.orig_argv:
    from asyncio import events
    from time import thread_time

    sys.modules["uvloop"] = None  # type: ignore[assignment]
    run = events.Handle._run  # noqa: SLF001 - the one place that calls all callbacks

    def run_timed(handle: events.Handle) -> None:
        """Run a callback, and write a line if it takes long."""
        began = thread_time()
        run(handle)
        took_s = thread_time() - began
        if took_s > MAX_CALLBACK_S:
            with open(os.environ["SLOW_CALLBACKS"], "a") as log:
                log.write(f"{took_s:.3f} s: {handle!r:.300}\n")

    events.Handle._run = run_timed  # type: ignore[assignment, method-assign] # noqa: SLF001
