"""What users can set: PAAC's settings, and the lambda of the estimates."""

from dataclasses import replace

from callboard_algorithms.spec import PAAC, PaacConfig, Preset, Source, setting


class A2cGaeConfig(PaacConfig):
    """Settings of A2C with generalised advantage estimates."""

    gae_lambda: float = setting(
        0.95,
        ge=0,
        le=1,
        symbol="λ",
        title="GAE lambda",
        common=True,
        group="optimisation",
        description="Weight of longer estimates of the advantage: 1 sums all rewards of the rollout, 0 takes "
        "only the next one.",
    )


ALGORITHM = replace(
    PAAC,
    id="a2c_gae",
    title="A2C with GAE",
    summary="PAAC whose advantages are generalised estimates instead of n-step ones.",
    paper="Schulman et al. 2016, High-Dimensional Continuous Control Using Generalized Advantage Estimation",
    config=A2cGaeConfig,
    sources=PAAC.sources | {"gae_lambda": Source("Schulman 2016, 6")},
    authors_code={},
    presets=(
        Preset(
            id="small-vectors",
            title="Small environment, one CPU core",
            description="Longer rollouts, from which the estimates differ.",
            observation="vector",
            config={"t_max": 20},
            stop={"agent_steps": 200_000},
        ),
    ),
)
