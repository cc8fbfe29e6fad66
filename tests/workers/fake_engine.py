"""A small engine that speaks the real one's contract, and can be told to misbehave.

One agent step is one point of `loss/policy` whose value is the step. The run's `notes` hold a JSON object:

- `step_s`: time a step takes (0.01)
- `checkpoint_every`: agent steps between checkpoints (10)
- `die`: by attempt number, `{"at": agent step, "how": a signal's number | "exit" | "raise"}`
- it takes every change of settings but one to `beta` 0.5
- `episode_every`: agent steps between kept episodes (none)
- `wait_at`: agent step at which the first attempt waits for a file `go` in the run's directory
- `job_waits`: a score, once printed, waits for the same file
- `deaf`: never stop when asked
- `family`: start a grandchild in a session of its own
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from backend.specs import events
from workers.engine.control import Control
from workers.engine.event_log import EventLog
from workers.engine.lifeline import die_with_parent

FAMILY = "callboard-fake-engine-family"


class FakeEngine:
    def __init__(self, run_dir: Path, attempt: int, resume: str | None, control: Control) -> None:
        self.run_dir, self.attempt, self.control = run_dir, attempt, control
        self.spec = json.loads((run_dir / "spec.json").read_text())
        self.notes: dict[str, Any] = json.loads(self.spec["notes"] or "{}")
        self.log = EventLog(run_dir / "attempts" / str(attempt) / "events.log")
        self.step = 0
        if resume is not None:
            self.step = json.loads((run_dir / "checkpoints" / resume).read_text())["agent_steps"]
        self.say(
            events.Started(
                time=time.time(), device="cpu", pid=os.getpid(), resumed_from=resume, agent_steps=self.step
            )
        )

    def say(self, *said: events.AnyEvent) -> None:
        self.log.add(*said)
        self.log.flush()

    def train(self) -> int:
        if self.notes.get("family"):
            sleeper = f"import time; time.sleep(600)  # {FAMILY} {self.run_dir}"
            subprocess.Popen([sys.executable, "-c", sleeper], start_new_session=True)
        while self.step < self.spec["stop"]["agent_steps"]:
            asked = self.control.stop_requested()
            if asked is not None and not self.notes.get("deaf"):
                return self.end("stopped", asked.reason)
            for settings in self.control.take_settings():
                refused = "not so" if settings.changes.get("beta") == 0.5 else None
                self.say(
                    events.SettingsChanged(
                        version=settings.version, agent_steps=self.step, frames=self.step,
                        wall_time_s=self.step / 100, changes=settings.changes, refused=refused,
                    )
                )  # fmt: skip
            time.sleep(self.notes.get("step_s", 0.01))
            self.step += 1
            one = {"agent_steps": [self.step], "frames": [self.step], "wall_time_s": [self.step / 100]}
            self.say(
                events.Points(metric="loss/policy", **one, episodes=[0], value=[float(self.step)]),
                self.report(),
            )
            if self.step % self.notes.get("episode_every", self.step + 1) == 0:
                self.episode()
            if self.control.watched:
                self.control.show(self.step, b"picture")
            self.misbehave()
            if self.step == self.notes.get("wait_at"):
                while self.attempt == 1 and not (self.run_dir / "go").exists():
                    time.sleep(0.01)
            if self.step % self.notes.get("checkpoint_every", 10) == 0:
                self.checkpoint()
        return self.end("finished", f"reached {self.step} agent steps")

    def misbehave(self) -> None:
        plan = self.notes.get("die", {}).get(str(self.attempt))
        if plan is None or plan["at"] != self.step:
            return
        if plan["how"] == "raise":
            raise RuntimeError("told to fail")
        if plan["how"] == "exit":
            sys.stderr.write("last words on stderr\n")
            sys.stderr.flush()
            os._exit(3)
        os.kill(os.getpid(), plan["how"])

    def report(self) -> events.Report:
        return events.Report(
            agent_steps=self.step, frames=self.step, updates=self.step, wall_time_s=self.step / 100,
            episodes=0, agent_steps_per_s=100.0, mean_return_100=None, best_return=None,
        )  # fmt: skip

    def episode(self) -> None:
        name = f"a{self.attempt}-s{self.step:012d}.npz"
        (self.run_dir / "replays").mkdir(exist_ok=True)
        (self.run_dir / "replays" / name).write_bytes(b"replay")
        self.say(
            events.Episode(
                agent_steps=self.step, frames=self.step, wall_time_s=self.step / 100, seed=self.step,
                episode_return=1.0, length_steps=10, length_frames=10, replay=name,
            )
        )  # fmt: skip

    def checkpoint(self) -> None:
        name = f"a{self.attempt}-s{self.step:012d}.pt"
        path = self.run_dir / "checkpoints" / name
        path.parent.mkdir(exist_ok=True)
        content = json.dumps({"agent_steps": self.step}).encode()
        partial = path.with_suffix(".partial")
        partial.write_bytes(content)
        os.replace(partial, path)
        self.say(
            events.CheckpointSaved(
                agent_steps=self.step, frames=self.step, updates=self.step, episodes=0,
                wall_time_s=self.step / 100, file=name, sha256=hashlib.sha256(content).hexdigest(),
                size_bytes=len(content),
            )
        )  # fmt: skip

    def end(self, state: Any, reason: str) -> int:
        self.checkpoint()
        self.say(events.Ended(time=time.time(), state=state, reason=reason))
        return 0


def main() -> int:
    task, run_dir, *options = sys.argv[1:]
    given = dict(zip(options[::2], options[1::2], strict=True))
    die_with_parent(int(given["--parent"]))
    if task == "train":
        control = Control(int(given["--control-fd"]))
        control.handle_signals()
        engine = FakeEngine(Path(run_dir), int(given["--attempt"]), given.get("--resume"), control)
        try:
            return engine.train()
        except RuntimeError as error:
            ended = events.Ended(
                time=time.time(), state="failed", reason=str(error), traceback="Traceback: x"
            )
            engine.say(ended)
            return 1
    spec = json.loads((Path(run_dir) / "spec.json").read_text())
    if (notes := json.loads(spec["notes"] or "{}")).get("job") == "fail":
        sys.stderr.write("cannot draw this\n")
        return 1
    time.sleep(notes.get("job_s", 0))
    if task == "video":
        replay = Path(given["--replay"]).read_bytes()
        Path(given["--out"]).write_bytes(b"video of " + replay)
        Path(given["--observed"]).write_bytes(b"observations of " + replay)
    else:
        n = int(given["--episodes"])
        scores = {"protocol": "plain", "seed": int(given["--seed"]), "returns": [1.0] * n}
        sys.stdout.write(json.dumps(scores | {"lengths_frames": [10] * n, "mean_return": 1.0}))
        sys.stdout.flush()
        while notes.get("job_waits") and not (Path(given["--checkpoint"]).parents[1] / "go").exists():
            time.sleep(0.01)
    return 0


if __name__ == "__main__":
    sys.exit(main())
