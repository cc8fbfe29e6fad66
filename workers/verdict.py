"""What becomes of a run when its engine is gone."""

import signal
from dataclasses import dataclass

from backend.db import Run
from backend.specs.events import Ended
from backend.specs.states import RunState
from workers import claims


@dataclass(frozen=True)
class Verdict:
    """The run's next state, why, and what a person needs to mend it."""

    state: RunState
    reason: str
    error: str | None = None


def judge(
    run: Run,
    last_word: Ended | None,
    exit_status: int | None,
    *,
    handing_back: bool,
    out_of_patience: bool,
    output_tail: str,
) -> Verdict:
    """Judge the end of the attempt that holds `run`.

    Args:
        run: locked, as someone may ask it to stop until now.
        last_word: the engine's `Ended` event; none where it died.
        exit_status: of its process, negative for a signal; none where it was never started.
        handing_back: whether the worker shuts down and gives the run back.
        out_of_patience: whether it was killed because it took too long to obey.
        output_tail: the end of the engine's own output.
    """
    if last_word is not None and last_word.state != "stopped":
        return Verdict(RunState(last_word.state), last_word.reason, last_word.traceback)
    died = f"its engine {_how(exit_status)}"
    if run.stop_requested:
        if last_word is not None:
            return Verdict(RunState.STOPPED, last_word.reason)
        if run.stop_requested == "kill":
            return Verdict(RunState.STOPPED, "ended at once")
        if out_of_patience:
            return Verdict(RunState.STOPPED, "ended by force: it did not stop when asked")
        return Verdict(RunState.STOPPED, f"{died} when it had been asked to stop")
    if handing_back:
        return Verdict(RunState.QUEUED, f"its worker on {run.host} shuts down")
    if last_word is not None:
        return Verdict(RunState.QUEUED, f"its engine was told to end by someone else: {last_word.reason}")
    if exit_status is not None and exit_status >= 0:
        return Verdict(RunState.FAILED, died, output_tail or died)
    after, then = claims.after_death(run)
    return Verdict(after, f"{died}: {then}", output_tail or None if after == RunState.FAILED else None)


def _how(exit_status: int | None) -> str:
    if exit_status is None:
        return "never started"
    if exit_status >= 0:
        return f"ended with exit status {exit_status} and no last word"
    try:
        return f"died by {signal.Signals(-exit_status).name}"
    except ValueError:
        return f"died by signal {-exit_status}"
