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
    run: Run, last_word: Ended | None, exit_status: int | None, *, handing_back: bool, output_tail: str
) -> Verdict:
    """Judge the end of the attempt that holds `run`.

    Args:
        run: locked, as someone may ask it to stop until now.
        last_word: the engine's `Ended` event; none where it died.
        exit_status: of its process, negative for a signal; none where it was never started.
        handing_back: whether the worker shuts down and gives the run back.
        output_tail: the end of the engine's own output.
    """
    if last_word is not None and last_word.state != "stopped":
        return Verdict(RunState(last_word.state), last_word.reason, last_word.traceback)
    if run.stop_requested:
        if last_word is not None:
            return Verdict(RunState.STOPPED, last_word.reason)
        how = (
            "ended at once" if run.stop_requested == "kill" else "ended by force: it did not stop when asked"
        )
        return Verdict(RunState.STOPPED, how)
    if handing_back:
        return Verdict(RunState.QUEUED, f"its worker on {run.host} shuts down")
    if last_word is not None:
        return Verdict(RunState.QUEUED, f"its engine was told to end by someone else: {last_word.reason}")
    if exit_status is not None and exit_status >= 0:
        reason = f"its engine ended with exit status {exit_status} and no last word"
        return Verdict(RunState.FAILED, reason, output_tail or reason)
    after, then = claims.after_death(run)
    died = (
        f"its engine died by {_name(-exit_status)}" if exit_status is not None else "its engine never started"
    )
    return Verdict(after, f"{died}: {then}", output_tail or None if after == RunState.FAILED else None)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
