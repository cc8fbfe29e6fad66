"""Games that go on from an episode, and controls that change hands: real emulator, network and stream."""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from backend.specs.environments import ENVIRONMENTS
from backend.specs.environments.atari import AtariConfig
from backend.specs.play import Moment, PlayAgent, PlaySetup
from backend.specs.recordings import GameStarted, joined
from backend.specs.run import RunSpec, parse_run_spec
from tests.support.waiting import PATIENCE_S
from tests.workers.engine.training.test_play import Session
from workers.engine.envs import Env, EnvCrashedError, make_env
from workers.engine.envs.atari import AtariEnv, rom_sha256
from workers.engine.methods.base import Policy
from workers.engine.methods.registry import METHODS
from workers.engine.training import emulator_states, play, play_agent
from workers.engine.training.play import Player, WorkerGone, check_moment, encoded
from workers.engine.training.restore import ReplayMismatchError

BREAKOUT = "ALE/Breakout-v5"
CONFIG = AtariConfig(noop_max=30)
"""An agent's: its episodes start with no-ops."""
SEED, K = 9, 40
AGENT = 1


@contextmanager
def _session(
    setup: PlaySetup,
    env: Env,
    agent: Policy | None = None,
    *,
    load: Callable[[], Policy] | None = None,
    folder: Path = Path(),
) -> Iterator[Session]:
    if agent is not None:
        load = lambda: agent  # noqa: E731
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(PATIENCE_S)

    def run() -> None:
        with closing(Player(setup, env, theirs, load, folder)) as player, suppress(WorkerGone):
            player.run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield Session(ours)
    finally:
        ours.close()
        thread.join()
        theirs.close()


def _repeated(actions: list[int]) -> tuple[AtariEnv, list[float]]:
    """The environment after an episode's first actions, and their rewards."""
    env = AtariEnv(BREAKOUT, CONFIG)
    out = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(SEED, out)
    return env, [env.step(action, out).reward for action in actions]


def _moment(actions: list[int], **changes: Any) -> Moment:
    return Moment(seed=SEED, actions=actions, rewards=_repeated(actions)[1], **changes)


def _actions(n: int) -> list[int]:
    return [1, *np.random.default_rng(6).integers(4, size=n - 1).tolist()]


def test_session_from_a_decision_has_the_memory_and_screen_of_the_episode_there() -> None:
    actions = _actions(K)
    setup = PlaySetup(
        environment=BREAKOUT, environment_config=CONFIG.model_dump(mode="json"), moment=_moment(actions)
    )
    env = AtariEnv(BREAKOUT, CONFIG)
    episode, rewards = _repeated(actions)
    memory, screen = episode.ale.getRAM(), episode.ale.getScreenRGB()
    with _session(setup, env) as session:
        for game in (1, 2):  # a new game begins there again
            session.until(paused=True, game=game)
            assert np.array_equal(env.ale.getRAM(), memory)
            assert np.array_equal(env.ale.getScreenRGB(), screen)
            assert session.shown[-1][1] == encoded(screen)
            assert session.status["frames"] == 4 * K
            assert session.status["score"] == sum(rewards) > 0
            session.send(type="speed", speed=4)
            session.send(type="action", action=3)
            session.after(4 * K + 20)
            session.send(type="new_game")
        session.until(game=3)
    starts = [report.game for report in session.reports if isinstance(report, GameStarted)]
    assert {(start.seed, start.restored_frames) for start in starts} == {(SEED, 4 * K)}
    first = session.parts()[0].part
    assert (first.first_step, first.actions[0]) == (K, 3)
    assert joined(turn for report in session.parts() for turn in report.part.turns) == [
        (0, sum(len(report.part.actions) for report in session.parts()))
    ]


def test_episode_of_another_rom_or_emulator_is_refused_in_one_sentence() -> None:
    def setup(**changes: Any) -> PlaySetup:
        return PlaySetup(
            environment=BREAKOUT,
            environment_config=CONFIG.model_dump(mode="json"),
            moment=Moment(seed=SEED, actions=[], rewards=[], **changes),
        )

    check_moment(setup(rom_sha256=rom_sha256(BREAKOUT)))
    with pytest.raises(ReplayMismatchError, match="another ROM than this host has"):
        check_moment(setup(rom_sha256="0" * 64))
    with pytest.raises(ReplayMismatchError, match=r"it was simulated by ale-py 0\.1, and there is"):
        check_moment(setup(versions={"ale-py": "0.1"}))


def _recurrent(environment: str) -> RunSpec:
    return _spec(environment, recurrent=True)


def _spec(environment: str, *, recurrent: bool) -> RunSpec:
    request = {"algorithm": "a3c", "environment": environment, "config": {"recurrent": recurrent}}
    return parse_run_spec(request | {"stop": {"agent_steps": 1}})


def _joint_setup(moment: Moment | None, spec: RunSpec) -> PlaySetup:
    return PlaySetup(
        environment=BREAKOUT,
        environment_config=CONFIG.model_dump(mode="json"),
        moment=moment,
        agent=PlayAgent(spec=spec.model_dump(mode="json"), checkpoint="c.pt", actor=AGENT),
    )


def _policy(spec: RunSpec, env: Env) -> Policy:
    torch.manual_seed(5)
    method = METHODS[spec.algorithm]
    policy: Policy = method.policy(method.network(spec.config, env), torch.device("cpu"), 7)
    return policy


def test_controls_go_to_the_agent_and_back_and_its_recurrent_state_is_that_of_who_has_watched() -> None:
    actions = _actions(12)
    spec = _recurrent(BREAKOUT)
    setup = PlaySetup(
        environment=BREAKOUT,
        environment_config=CONFIG.model_dump(mode="json"),
        moment=_moment(actions),
        agent=PlayAgent(spec=spec.model_dump(mode="json"), checkpoint="c.pt", actor=AGENT),
    )
    env = AtariEnv(BREAKOUT, CONFIG)
    with _session(setup, env, _policy(spec, env)) as session:
        session.until(paused=True, game=1)
        session.send(type="speed", speed=4)
        session.send(type="action", action=2)
        session.after(80)
        session.send(type="control", to="agent")
        session.until(acting="agent")
        session.after(120)
        session.send(type="control", to="person")
        session.until(acting="person")
        session.after(150)
        session.send(type="pause", paused=True)
        session.until(paused=True)
        session.send(type="control", to="agent")  # which goes on
        session.until(acting="agent", paused=False)
        session.after(180)
        session.send(type="new_game")
        session.until(game=2, acting="person")
    parts = [report.part for report in session.parts()]
    turns = joined(turn for part in parts for turn in part.turns)
    assert [actor for actor, _ in turns] == [0, AGENT, 0, AGENT]
    played = [action for part in parts for action in part.actions]
    assert sum(n for _, n in turns) == len(played)

    watcher = _policy(spec, env)
    advised = _watched(watcher, [*actions, *played])[len(actions) :]
    acted = [actor for actor, n in turns for _ in range(n)]
    by_agent = [t for t, actor in enumerate(acted) if actor == AGENT]
    assert [played[t] for t in by_agent] == [advised[t] for t in by_agent]
    assert {played[t] for t, actor in enumerate(acted) if actor == 0} <= {0, 2}


@pytest.mark.parametrize("recurrent", [True, False])
def test_game_is_shown_and_played_while_the_agent_is_loaded(
    monkeypatch: pytest.MonkeyPatch, recurrent: bool
) -> None:
    monkeypatch.setattr(play, "IDLE_FRAME_S", 1e6)
    actions = _actions(12)
    spec = _spec(BREAKOUT, recurrent=recurrent)
    setup = _joint_setup(_moment(actions), spec)
    env = AtariEnv(BREAKOUT, CONFIG)
    may_load = threading.Event()

    def load() -> Policy:
        assert may_load.wait(PATIENCE_S)
        return _policy(spec, env)

    with _session(setup, env, load=load) as session:
        session.until(paused=True, game=1)
        assert session.shown[-1][1] == encoded(_repeated(actions)[0].ale.getScreenRGB())
        session.send(type="speed", speed=4)
        session.send(type="action", action=2)
        session.after(4 * 12 + 40)
        assert not session.status["loading"]  # nobody waits for it
        session.send(type="control", to="agent")
        session.until(acting="agent", loading=True, reading=False)
        session.send(type="pause", paused=True)
        session.until(paused=True, loading=True)
        session.send(type="control", to="person")
        session.until(acting="person", loading=False, paused=True)
        session.send(type="control", to="agent")
        session.until(acting="agent", loading=True, paused=False)
        may_load.set()
        session.until(acting="agent", loading=False, reading=False)
        session.after(4 * 12 + 100)
        session.send(type="new_game")
        session.until(game=2, acting="person")
    parts = [report.part for report in session.parts()]
    turns = joined(turn for part in parts for turn in part.turns)
    assert [actor for actor, _ in turns] == [0, AGENT]
    if recurrent:
        played = [action for part in parts for action in part.actions]
        advised = _watched(_policy(spec, env), [*actions, *played])[12:]
        assert played[turns[0][1] :] == advised[turns[0][1] :]


def test_session_ends_while_the_agent_is_loaded() -> None:
    spec = _spec(BREAKOUT, recurrent=True)
    env = AtariEnv(BREAKOUT, CONFIG)
    may_load, has_loaded = threading.Event(), threading.Event()

    def load() -> Policy:
        assert may_load.wait(PATIENCE_S)
        has_loaded.set()
        return _policy(spec, env)

    with _session(_joint_setup(None, spec), env, load=load) as session:
        session.until(paused=True, game=1)
        session.send(type="action", action=2)
        session.after(8)
    assert not has_loaded.is_set()  # the session's thread has ended
    may_load.set()
    assert has_loaded.wait(PATIENCE_S)


@pytest.mark.parametrize("handed_over", [True, False])
def test_games_go_on_without_an_agent_that_cannot_be_loaded(handed_over: bool) -> None:
    may_fail = threading.Event()

    def load() -> Policy:
        assert may_fail.wait(PATIENCE_S)
        raise ValueError("it belongs to another network")

    setup = _joint_setup(None, _spec(BREAKOUT, recurrent=False))
    with _session(setup, AtariEnv(BREAKOUT, CONFIG), load=load) as session:
        session.until(paused=True, game=1)
        session.send(type="speed", speed=4)
        if handed_over:
            session.send(type="control", to="agent")
            session.until(acting="agent", loading=True)
        else:
            session.send(type="action", action=2)
            session.until(paused=False)
        may_fail.set()
        why = "it could not be loaded: it belongs to another network"
        session.until(acting="person", loading=False, unavailable=why, paused=handed_over)
        session.send(type="control", to="agent")  # ignored
        session.send(type="action", action=2)
        session.after(session.status["frames"] + 40)
        assert session.status["acting"] == "person"
        session.send(type="new_game")
        session.until(game=2, unavailable=why, paused=True)
    assert {turn[0] for report in session.parts() for turn in report.part.turns} == {0}


def test_agent_reads_no_game_of_another_environment_than_atari_before_it_is_played_or_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []

    class Started(play_agent.Reader):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            started.append(1)

    monkeypatch.setattr(play, "IDLE_FRAME_S", 0.01)
    monkeypatch.setattr(play_agent, "Reader", Started)
    spec = _spec("Catch-v0", recurrent=True)
    config = ENVIRONMENTS["Catch-v0"].config()
    setup = PlaySetup(
        environment="Catch-v0",
        environment_config=config.model_dump(mode="json"),
        moment=Moment(seed=SEED, actions=[0, 0], rewards=[0.0, 0.0]),
        agent=PlayAgent(spec=spec.model_dump(mode="json"), checkpoint="c.pt", actor=AGENT),
    )
    env = make_env("Catch-v0", config)
    agent = _policy(spec, env)
    is_loaded = threading.Event()
    monkeypatch.setattr(agent, "forget", lambda environment: is_loaded.set())
    with _session(setup, env, agent) as session:
        session.until(paused=True, game=1)
        assert is_loaded.wait(PATIENCE_S)
        for speed in (2, 3, 4):
            session.send(type="speed", speed=speed)
            session.until(speed=speed)
        assert started == []
        session.send(type="control", to="agent")
        session.until(over=True)
    assert started == [1]


@pytest.mark.parametrize("stands_still", [True, False])
def test_recurrent_agent_reads_a_long_game_while_it_stands_still_or_when_it_is_handed_the_controls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands_still: bool
) -> None:
    monkeypatch.setattr(emulator_states, "INTERVAL_FRAMES", 80)
    monkeypatch.setattr(emulator_states, "MIN_FRAMES", 80)
    read: list[int] = []
    may_read, has_read = threading.Event(), threading.Event()
    read_on, close = play_agent.Reader.read, play_agent.Reader.close

    def slowed(
        reader: play_agent.Reader, actions: Sequence[int], rewards: Sequence[float], until_s: float
    ) -> bool:
        """Read nothing before `may_read`."""
        if not may_read.is_set():
            return False
        read.append(len(actions))
        return read_on(reader, actions, rewards, until_s)

    def closed(reader: play_agent.Reader) -> None:
        close(reader)
        has_read.set()

    monkeypatch.setattr(play_agent.Reader, "read", slowed)
    monkeypatch.setattr(play_agent.Reader, "close", closed)
    actions = _actions(K)
    _save_states(actions, tmp_path / "states.npz")
    spec = _recurrent(BREAKOUT)
    setup = PlaySetup(
        environment=BREAKOUT,
        environment_config=CONFIG.model_dump(mode="json"),
        moment=_moment(actions, states="states.npz"),
        agent=PlayAgent(spec=spec.model_dump(mode="json"), checkpoint="c.pt", actor=AGENT),
    )
    env = AtariEnv(BREAKOUT, CONFIG)
    if stands_still:
        may_read.set()
    with _session(setup, env, _policy(spec, env), folder=tmp_path) as session:
        session.until(paused=True, game=1)
        assert session.status["frames"] == 4 * K
        assert not stands_still or has_read.wait(PATIENCE_S)
        session.send(type="speed", speed=4)
        session.send(type="action", action=2)
        session.after(4 * K + 40)
        session.send(type="control", to="agent")
        if not stands_still:
            session.until(acting="agent", reading=True, paused=False)
            may_read.set()
        session.until(acting="agent", reading=False)
        session.after(4 * K + 100)
        session.send(type="new_game")
        session.until(game=2, acting="person")
    parts = [report.part for report in session.parts()]
    turns = joined(turn for part in parts for turn in part.turns)
    assert [actor for actor, _ in turns] == [0, AGENT]
    played = [action for part in parts for action in part.actions]
    by_person = turns[0][1]
    assert max(read) <= K + by_person
    assert (max(read) > K) == (not stands_still)
    advised = _watched(_policy(spec, env), [*actions, *played])[K:]
    assert played[by_person:] == advised[by_person:]


def test_agent_forgets_the_game_before(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = _recurrent(BREAKOUT)
    setup = PlaySetup(
        environment=BREAKOUT,
        environment_config=CONFIG.model_dump(mode="json"),
        agent=PlayAgent(spec=spec.model_dump(mode="json"), checkpoint="c.pt", actor=AGENT),
    )
    env = AtariEnv(BREAKOUT, CONFIG)
    agent = _policy(spec, env)
    forgotten: list[int] = []
    monkeypatch.setattr(agent, "forget", forgotten.append)
    with _session(setup, env, agent) as session:
        session.until(paused=True, game=1)
        session.send(type="new_game")
        session.until(paused=True, game=2)
        session.send(type="new_game")
        session.until(paused=True, game=3)
    assert forgotten[:2] == [0, 0]


def _save_states(actions: list[int], path: Path) -> None:
    env = AtariEnv(BREAKOUT, CONFIG)
    out = np.empty(env.observation_shape, env.observation_dtype)
    env.reset(SEED, out)
    states = emulator_states.EmulatorStates(env)
    for t, action in enumerate(actions):
        states.add(t + 1, env.step(action, out).frames)
    assert states.save(path)


def test_recurrent_agent_reads_no_episode_that_went_another_way() -> None:
    actions = _actions(K)
    setup = PlaySetup(environment=BREAKOUT, environment_config=CONFIG.model_dump(mode="json"))
    seen: list[int] = []
    reader = play_agent.Reader(setup, lambda observation: seen.append(1), SEED)
    rewards = _repeated(actions)[1]
    assert not reader.read(actions, rewards, 0.0)
    with pytest.raises(ReplayMismatchError, match=f"decision {K - 1} gave reward"):
        reader.read(actions, [*rewards[:-1], rewards[-1] + 1], float("inf"))
    assert len(seen) == K
    reader.close()


@pytest.mark.parametrize(
    ("crashed", "reason"),
    [(True, "the environment crashed in decision 3"), (False, "is over after decision 3")],
)
def test_recurrent_agent_reads_no_episode_that_ended(
    monkeypatch: pytest.MonkeyPatch, crashed: bool, reason: str
) -> None:
    actions = _actions(K)
    rewards = _repeated(actions)[1]
    setup = PlaySetup(environment=BREAKOUT, environment_config=CONFIG.model_dump(mode="json"))
    reader = play_agent.Reader(setup, lambda observation: None, SEED)
    assert reader.read(actions[:3], rewards[:3], float("inf"))
    step = AtariEnv.step
    monkeypatch.setattr(
        AtariEnv, "step", lambda *args: replace(step(*args), episode_over=True, crashed=crashed)
    )
    with pytest.raises(ReplayMismatchError, match=reason):
        reader.read(actions, rewards, float("inf"))
    reader.close()


@pytest.mark.parametrize("fails", ["start", "while_still", "handed_over"])
def test_game_goes_on_without_an_agent_that_cannot_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    monkeypatch.setattr(emulator_states, "INTERVAL_FRAMES", 80)
    monkeypatch.setattr(emulator_states, "MIN_FRAMES", 80)
    may_read = threading.Event()
    read_on = play_agent.Reader.read
    monkeypatch.setattr(play_agent.Reader, "read", lambda *args: may_read.is_set() and read_on(*args))
    actions = _actions(K)
    _save_states(actions, tmp_path / "states.npz")
    right = _moment(actions, states="states.npz")
    wrong = right.model_copy(update={"rewards": [right.rewards[0] + 1, *right.rewards[1:]]})
    spec = _recurrent(BREAKOUT)
    setup = PlaySetup(
        environment=BREAKOUT,
        environment_config=CONFIG.model_dump(mode="json"),
        moment=wrong,
        agent=PlayAgent(spec=spec.model_dump(mode="json"), checkpoint="c.pt", actor=AGENT),
    )
    env = AtariEnv(BREAKOUT, CONFIG)
    agent = _policy(spec, env)
    why = "decision 0 gave reward 0.0"
    if fails == "start":
        why = "it does not start"
        monkeypatch.setattr(play_agent, "make_env", _crashing)
    if fails != "handed_over":
        may_read.set()
    with _session(setup, env, agent, folder=tmp_path) as session:
        session.until(paused=True, game=1)
        if fails == "handed_over":
            session.send(type="control", to="agent")
            session.until(acting="agent", reading=True)
            may_read.set()
            session.until(acting="person", reading=False, paused=True)
        while session.status["unavailable"] is None:
            session.status = {}
            session.until(game=1)
        assert why in session.status["unavailable"]
        session.send(type="control", to="agent")  # ignored
        session.send(type="speed", speed=4)
        session.send(type="action", action=2)
        session.after(4 * K + 40)
        assert session.status["acting"] == "person"
        session.send(type="new_game")
        session.until(game=2, acting="person", paused=True)
    parts = [report.part for report in session.parts()]
    assert joined(turn for part in parts for turn in part.turns)[0][0] == 0
    assert {action for part in parts for action in part.actions} == {2}


def _crashing(environment: str, config: AtariConfig) -> Env:
    raise EnvCrashedError("it does not start")


def test_message_is_applied_and_shown_at_once_while_the_agent_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(play, "IDLE_FRAME_S", 1e6)
    monkeypatch.setattr(play_agent.Reader, "read", lambda *args: False)
    spec = _recurrent(BREAKOUT)
    setup = PlaySetup(
        environment=BREAKOUT,
        environment_config=CONFIG.model_dump(mode="json"),
        moment=_moment(_actions(12)),
        agent=PlayAgent(spec=spec.model_dump(mode="json"), checkpoint="c.pt", actor=AGENT),
    )
    env = AtariEnv(BREAKOUT, CONFIG)
    with _session(setup, env, _policy(spec, env)) as session:
        session.until(paused=True, game=1)
        session.send(type="speed", speed=2)
        session.until(speed=2)
        session.send(type="control", to="agent")
        session.until(acting="agent", reading=True)
        session.send(type="pause", paused=True)
        session.until(paused=True)


def _watched(policy: Policy, actions: list[int]) -> list[int]:
    """What an agent would do at each decision of an episode that it watches."""
    env = make_env(BREAKOUT, CONFIG)
    out: NDArray[np.uint8] = np.empty(env.observation_shape, np.uint8)
    env.reset(SEED, out)
    advised = []
    for action in actions:
        advised.append(int(policy.act(out[None], np.zeros(1, np.int64))[0][0]))
        env.step(action, out)
    return advised
