"""Saliency maps: how much an agent's outputs change where its input is blurred.

Engine, table and API share this model; the engine imports nothing of the service but specs.
"""

from pydantic import Field

from backend.specs.fields import Frozen

STRIDE_PIXELS = 5
"""Distance of the rows and columns at which a map is computed."""


class SaliencyMap(Frozen):
    """The map of one decision, and what the network saw there."""

    height: int = Field(ge=1, examples=[84])
    """Rows of the observation, in pixels."""
    width: int = Field(ge=1, examples=[84])
    """Columns of the observation, in pixels."""
    rows: list[int] = Field(examples=[[2, 7, 12]])
    """Rows of the centres of the blurred regions."""
    columns: list[int] = Field(examples=[[2, 7, 12]])
    """Columns of those centres."""
    policy: list[list[float]]
    """Half the squared change of the logits, of Q, or of the mean of a continuous action; a row for each of
    `rows`."""
    value: list[list[float]]
    """Half the squared change of V, or of max Q."""
    frame: str
    """The newest frame of the observation: its pixels, row by row, in base64."""
    channels: int = Field(ge=1, le=3)
    """Bytes of a pixel: 1 is grey, 3 are red, green and blue."""
