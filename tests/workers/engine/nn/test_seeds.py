"""Every episode has a seed of its own."""

import numpy as np

from workers.engine.nn.seeds import EpisodeSeeds, episode_seed, restore_rng, rng_state


def test_episode_seeds_are_unique() -> None:
    drawn = {episode_seed(run, stream, k) for run in range(5) for stream in range(10) for k in range(100)}
    assert len(drawn) == 5_000
    assert all(0 <= seed < 2**32 for seed in drawn)


def test_episode_seeds_of_an_environment_do_not_depend_on_others() -> None:
    together, alone = EpisodeSeeds(3, range(4)), EpisodeSeeds(3, range(2, 4))
    for other in (0, 1, 1, 3, 0):
        together.next(other)
    assert [together.next(2) for _ in range(3)] == [alone.next(0) for _ in range(3)]
    assert together.begun == [2, 2, 3, 1]


def test_restored_seeds_continue() -> None:
    first = EpisodeSeeds(3, range(2))
    expected = [first.next(1) for _ in range(4)][2:]
    resumed = EpisodeSeeds(3, range(2))
    resumed.begun = [0, 2]
    assert [resumed.next(1) for _ in range(2)] == expected


def test_generator_continues_in_its_own_run_and_restarts_in_a_fork() -> None:
    first, resumed, forked = (np.random.default_rng(seed) for seed in (1, 2, 3))
    first.random(5)
    state = rng_state(first, run_seed=1)
    restore_rng(resumed, state, run_seed=1)
    restore_rng(forked, state, run_seed=3)
    assert resumed.random() == first.random()
    assert forked.random() == np.random.default_rng(3).random()
