"""A first layer that centres pixels by the mean image of random play.

    x <- clip((x - mean) / deviation, -5, 5)

with the mean of each pixel, and one deviation of all pixels from their means: the root of the mean of
(x - mean)^2 over pixels and states. What never changes in a game becomes 0. In a full Atari frame little
moves: this deviation is 6 to 16 of 255 grey levels. The deviation within one state is 27 to 60, nearly all of
it background.

Both are parameters without a gradient. So theta holds them, and whatever has theta, or a copy of it, scales
observations alike: actors, target networks, checkpoints, evaluations, and agents outside Callboard. The
optimizers leave an element whose gradients are all 0 as it is.

Not in the papers, which divide pixels by 255.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

BOUND = 5.0
"""Centred pixels are clipped to ± this number of deviations."""
MIN_DEVIATION = 1.0
"""Grey levels; a smaller deviation counts as this one, so that pixels that hardly change are not noise."""


class Centre(nn.Module):
    """Centres pixels; until `set` it divides them by 255."""

    def __init__(self, observation_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(observation_shape), requires_grad=False)
        """Grey levels, (H, W, C)."""
        self.deviation = nn.Parameter(torch.full((1,), 255.0), requires_grad=False)
        """Grey levels, (1,)."""

    @torch.no_grad()
    def set(self, mean_HWC: NDArray[np.float64], deviation: float) -> None:
        """Centre by this mean image and deviation from now on, both in grey levels."""
        self.mean.copy_(torch.from_numpy(mean_HWC))
        self.deviation.fill_(max(deviation, MIN_DEVIATION))

    def forward(self, pixels: Tensor) -> Tensor:
        """Centred pixels of the parameters' dtype, of pixels uint8; both (B, C, H, W), channels last."""
        return self.centred(pixels.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    def centred(self, pixels_BHWC: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Centred pixels (B, H, W, C), in `out` if given; bit for bit those of `centred_step_by_step`.

        On a CPU that is one pass over the pixels, where PyTorch needs four.
        """
        mean, deviation = self.mean, self.deviation
        if mean.device.type == "cpu" and mean.dtype == torch.float32:
            # Numba takes 44 MB: it is imported only in processes that need it.
            from workers.engine.nn.kernels import centre

            if out is None:
                out = torch.empty(pixels_BHWC.shape)
            if out.dtype == torch.float32:
                centre(pixels_BHWC.contiguous().numpy(), mean.numpy(), deviation.numpy(), out.numpy())
                return out
        if out is not None and out.dtype == mean.dtype:
            return centred_step_by_step(pixels_BHWC, mean, deviation, out=out)
        x = centred_step_by_step(pixels_BHWC, mean, deviation)
        return x if out is None else out.copy_(x)


@torch.no_grad()
def centred_step_by_step(
    pixels_BHWC: Tensor, mean_HWC: Tensor, deviation: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """Centred pixels (B, H, W, C) of the mean's dtype, by PyTorch's own operations."""
    x = torch.sub(pixels_BHWC, mean_HWC, out=out)
    return x.mul_(deviation.reciprocal()).clamp_(-BOUND, BOUND)


def centre_of(body: nn.Module) -> Centre | None:
    """The body's first layer, if that centres pixels."""
    first = next(iter(body.children()), None)
    return first if isinstance(first, Centre) else None
