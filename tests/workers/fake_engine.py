"""A fake engine with the real engine's interface, which can be configured to misbehave.

Each agent step emits one point of `loss/policy` with the step as value. The run's `notes` hold a JSON object:

- `step_s`: duration of a step (0.01)
- `checkpoint_every`: agent steps between checkpoints (10)
- `die`: by attempt number, `{"at": agent step, "how": signal number | "exit" | "raise" | "full"}`
- `damages_end`: flip a bit of this attempt's final event
- `episode_every`: agent steps between stored episodes (none)
- `damages_resumed`: flip a bit of the checkpoint that this attempt resumes from, before it is read
- `prints`: bytes printed at each agent step (none)
- `wait_at`: agent step at which the first attempt waits for a file `go` in the run's directory
- `job_waits`: an evaluation waits for the same file after printing its scores
- `ignores_stop`: ignore stop requests
- `never_starts`: ignore SIGTERM, and hang before the event `started`
- `score`: name of a setting whose value is the score; a thousandth of the seed is added (no score)
- `grandchild`: start a grandchild in a new session

It accepts every change of settings but `beta` = 0.5.
"""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

from backend.specs import events, machine_faults
from workers.engine.processes.child import die_with_parent
from workers.engine.training.control import Control
from workers.engine.training.event_log import EventLog

GRANDCHILD = "callboard-fake-engine-grandchild"
PIDS = "fake-engine-pids"
"""Folder beside that of the runs, with a file for each process that fake engines have been or started."""
STATE = "state.json"
"""Member of a checkpoint, which is a zip as a real one is."""


class FakeEngine:
    def __init__(self, run_dir: Path, attempt: int, resume: str | None, control: Control) -> None:
        self.run_dir, self.attempt, self.control = run_dir, attempt, control
        self.spec = json.loads((run_dir / "spec.json").read_text())
        self.notes: dict[str, Any] = json.loads(self.spec["notes"] or "{}")
        self.log = EventLog(run_dir / "attempts" / str(attempt) / "events.log")
        self.step = 0
        if self.notes.get("never_starts"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            (run_dir / "hangs").touch()
            time.sleep(600)
        if resume is not None:
            if self.notes.get("damages_resumed") == self.attempt:
                flip_bit(run_dir / "checkpoints" / resume, 60)
            with zipfile.ZipFile(run_dir / "checkpoints" / resume) as archive:
                self.step = json.loads(archive.read(STATE))["agent_steps"]
        self.emit(
            events.StartedEvent(
                time=time.time(), device="cpu", pid=os.getpid(), resumed_from=resume, agent_steps=self.step
            )
        )

    def emit(self, *emitted: events.AnyEvent) -> None:
        self.log.add(*emitted)
        self.log.flush()

    def train(self) -> int:
        if self.notes.get("grandchild"):
            sleeper = f"import time; time.sleep(600)  # {GRANDCHILD} {self.run_dir}"
            record_pid(
                self.run_dir, subprocess.Popen([sys.executable, "-c", sleeper], start_new_session=True).pid
            )
        while self.step < self.spec["stop"]["agent_steps"]:
            request = self.control.stop_requested()
            if request is not None and not self.notes.get("ignores_stop"):
                return self.end("stopped", request.reason)
            for settings in self.control.take_settings():
                refused = "refused by the test" if settings.changes.get("beta") == 0.5 else None
                self.emit(
                    events.SettingsChangedEvent(
                        version=settings.version, agent_steps=self.step, frames=self.step,
                        wall_time_s=self.step / 100, changes=settings.changes, refused=refused,
                    )
                )  # fmt: skip
            time.sleep(self.notes.get("step_s", 0.01))
            self.step += 1
            axes = {"agent_steps": [self.step], "frames": [self.step], "wall_time_s": [self.step / 100]}
            self.emit(
                events.PointsEvent(metric="loss/policy", **axes, episodes=[0], value=[float(self.step)]),
                self.report(),
            )
            if self.step % self.notes.get("episode_every", self.step + 1) == 0:
                self.episode()
            if self.control.watched:
                self.control.send_frame(self.step, b"frame")
            if "prints" in self.notes:
                sys.stdout.write("x" * self.notes["prints"] + "\n")
                sys.stdout.flush()
            self.misbehave()
            if self.step == self.notes.get("wait_at"):
                while self.attempt == 1 and not (self.run_dir / "go").exists():
                    time.sleep(0.01)
            if (
                self.control.take_checkpoint_request()
                or self.step % self.notes.get("checkpoint_every", 10) == 0
            ):
                self.checkpoint()
        return self.end("finished", f"reached {self.step} agent steps")

    def misbehave(self) -> None:
        plan = self.notes.get("die", {}).get(str(self.attempt))
        if plan is None or plan["at"] != self.step:
            return
        if plan["how"] == "raise":
            raise RuntimeError("failure requested by the test")
        if plan["how"] == "full":
            os._exit(machine_faults.exit_status(errno.ENOSPC))
        if plan["how"] == "exit":
            sys.stderr.write("last line on stderr\n")
            sys.stderr.flush()
            os._exit(3)
        os.kill(os.getpid(), plan["how"])

    def report(self) -> events.ReportEvent:
        setting = self.notes.get("score")
        score = None if setting is None else self.spec["config"][setting] + self.spec["seed"] / 1000
        return events.ReportEvent(
            agent_steps=self.step, frames=self.step, updates=self.step, wall_time_s=self.step / 100,
            episodes=0, agent_steps_per_s=100.0, mean_return_100=score, best_return=score,
        )  # fmt: skip

    def episode(self) -> None:
        name = f"a{self.attempt}-s{self.step:012d}.npz"
        (self.run_dir / "replays").mkdir(exist_ok=True)
        content = f"replay of step {self.step}".encode()
        (self.run_dir / "replays" / name).write_bytes(content)
        self.emit(
            events.EpisodeEvent(
                agent_steps=self.step, frames=self.step, wall_time_s=self.step / 100, seed=self.step,
                episode_return=1.0, length_steps=10, length_frames=10, replay=name,
                replay_sha256=hashlib.sha256(content).hexdigest(),
            )
        )  # fmt: skip

    def checkpoint(self) -> None:
        name = f"a{self.attempt}-s{self.step:012d}.pt"
        path = self.run_dir / "checkpoints" / name
        path.parent.mkdir(exist_ok=True)
        partial = path.with_suffix(".partial")
        with zipfile.ZipFile(partial, "w") as archive:
            archive.writestr(STATE, json.dumps({"agent_steps": self.step}))
        content = partial.read_bytes()
        os.replace(partial, path)
        self.emit(
            events.CheckpointSavedEvent(
                agent_steps=self.step, frames=self.step, updates=self.step, episodes=0,
                wall_time_s=self.step / 100, file=name, sha256=hashlib.sha256(content).hexdigest(),
                size_bytes=len(content),
            )
        )  # fmt: skip

    def end(self, state: Any, reason: str) -> int:
        self.checkpoint()
        self.emit(events.EndedEvent(time=time.time(), state=state, reason=reason))
        if self.notes.get("damages_end") == self.attempt:
            flip_bit(self.run_dir / "attempts" / str(self.attempt) / "events.log", -10)
        return 0


def flip_bit(path: Path, at: int) -> None:
    """Flip a bit of the byte at this place, or from the end if it is negative, as a disk does."""
    with path.open("r+b") as file:
        place = file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def record_pid(run_dir: Path, pid: int) -> None:
    """Leave a process's PID for `engines_of` of the tests."""
    folder = next(parent for parent in run_dir.parents if parent.name == "runs").with_name(PIDS)
    folder.mkdir(exist_ok=True)
    (folder / str(pid)).touch()


def main() -> int:
    task, run_dir, *options = sys.argv[1:]
    given = dict(zip(options[::2], options[1::2], strict=True))
    die_with_parent(int(given["--parent"]))
    record_pid(Path(run_dir), os.getpid())
    if task == "train":
        control = Control(int(given["--control-fd"]))
        control.handle_signals()
        try:
            engine = FakeEngine(Path(run_dir), int(given["--attempt"]), given.get("--resume"), control)
            return engine.train()
        except RuntimeError as error:
            ended = events.EndedEvent(
                time=time.time(), state="failed", reason=str(error), traceback="Traceback: x"
            )
            engine.emit(ended)
            return 1
        except OSError as error:
            if (fault := machine_faults.errno_of(error)) is None:
                raise
            return machine_faults.exit_status(fault)
        except (zipfile.BadZipFile, ValueError):
            return machine_faults.UNREADABLE_CHECKPOINT_STATUS
    spec = json.loads((Path(run_dir) / "spec.json").read_text())
    if (notes := json.loads(spec["notes"] or "{}")).get("job") == "fail":
        sys.stderr.write("cannot render this\n")
        return 1
    time.sleep(notes.get("job_s", 0))
    if task == "video":
        replay = Path(given["--replay"]).read_bytes()
        Path(given["--out"]).write_bytes(b"video of " + replay)
        Path(given["--observed"]).write_bytes(b"observations of " + replay)
    elif task == "thumbnail":
        source = Path(given.get("--video") or given["--replay"]).read_bytes()
        Path(given["--out"]).write_bytes(b"thumbnail of " + source)
    else:
        Path(given["--checkpoint"]).read_bytes()
        n = int(given["--episodes"])
        scores = {"protocol": given["--protocol"], "seed": int(given["--seed"]), "returns": [1.0] * n}
        sys.stdout.write(json.dumps(scores | {"lengths_frames": [10] * n, "mean_return": 1.0}))
        sys.stdout.flush()
        while notes.get("job_waits") and not (Path(run_dir).parents[1] / "go").exists():
            time.sleep(0.01)
    return 0


if __name__ == "__main__":
    sys.exit(main())
