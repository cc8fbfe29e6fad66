"""A network over the decisions of one update, and its gradient by autograd.

Read `AutogradUnroll`; `workers.engine.nn.fast` computes the same, faster, with a hand-written backward pass.
`create_unroll` chooses between them. Methods take it and `Heads` from here: no other module imports `fast`.
"""

from typing import Protocol

import torch
from torch import Tensor, nn

from workers.engine.nn.fast.heads import Heads
from workers.engine.nn.fast.unroll import FusedUnroll, stages_of
from workers.engine.nn.networks import Lstm, features_of

__all__ = ["AutogradUnroll", "Heads", "Unroll", "create_unroll"]


class Unroll(Protocol):
    """A body, and perhaps an LSTM behind it, over the decisions of one update.

    The parameters must not change between `begin` and `backward`.
    """

    state: tuple[Tensor, Tensor] | None
    """h and c of the LSTM, each (1, H), before the next decision; None without an LSTM."""
    reuses_memory: bool
    """Whether updates of equally many decisions use the same memory, so that `Graphs` can record them."""

    def begin(self) -> None:
        """Begin an update: drop the decisions of the last one; the LSTM's state stays."""

    def reset_state(self) -> None:
        """Begin an episode; only between two updates."""

    def step(self, observation: Tensor) -> Tensor:
        """Features of the next decision's state.

        Args:
            observation: (B, H, W, C) uint8 or (B, D) float32; with an LSTM, B is 1. It may be overwritten
                afterwards. B is the same each time.

        Returns:
            (B, F), valid until the next update.
        """

    def drop_last(self) -> None:
        """Drop the last decision as if it had not been taken; once in an update, and no `step` follows."""

    def peek(self, observation: Tensor) -> Tensor:
        """Features (B, F) of a state on which no decision is taken, as after the last one of an update."""

    def features(self) -> Tensor:
        """Features (T B, F) of all decisions of the update, a leaf whose gradient `backward` takes.

        Call it only in an update that has decisions: a dropped one counts no more.
        """

    def backward(self, d_features_TF: Tensor) -> None:
        """Add the parameters' gradient to their existing `grad`, given the features' gradient (T B, F)."""


class AutogradUnroll:
    """An `Unroll` of any layers, which must treat each state of a batch alone and without randomness.

    Its backward pass makes a second, batched forward pass over the states.
    """

    state: tuple[Tensor, Tensor] | None
    reuses_memory = False

    def __init__(self, body: nn.Module, lstm: Lstm | None, *, dtype: torch.dtype | None = None) -> None:
        """Arguments as of `create_unroll`."""
        self._body = body
        self._lstm = lstm
        self._dtype = dtype
        self.reset_state()
        self.begin()

    def begin(self) -> None:
        """See `Unroll`."""
        self._observations: list[Tensor] = []
        self._features: list[Tensor] = []
        self._first_state = self._state_before = self.state

    def reset_state(self) -> None:
        """See `Unroll`."""
        self.state = None
        if self._lstm is not None:
            zero = self._lstm.weight.new_zeros(1, self._lstm.cells)
            self.state = (zero, zero)

    @torch.no_grad()
    def step(self, observation: Tensor) -> Tensor:
        """See `Unroll`."""
        if not self._observations:
            self._first_state = self.state
        self._observations.append(observation.clone())
        self._state_before = self.state
        x, self.state = self._forward(observation, self.state)
        self._features.append(x)
        return x

    def drop_last(self) -> None:
        """See `Unroll`."""
        self._observations.pop()
        self._features.pop()
        self.state = self._state_before

    @torch.no_grad()
    def peek(self, observation: Tensor) -> Tensor:
        """See `Unroll`."""
        return self._forward(observation, self.state)[0]

    def features(self) -> Tensor:
        """See `Unroll`."""
        return torch.cat(self._features).requires_grad_()

    def backward(self, d_features_TF: Tensor) -> None:
        """See `Unroll`."""
        # Autograd takes no tensors of inference mode, in which actors may have acted: these are copies.
        with torch.inference_mode(False), torch.enable_grad():
            observation = torch.cat([observation.clone() for observation in self._observations])
            state = self._first_state
            if state is not None:
                state = (state[0].clone(), state[1].clone())
            features_TF, _ = self._forward(observation, state)
            features_TF.backward(d_features_TF.clone())  # type: ignore[no-untyped-call]

    def _forward(
        self, observation: Tensor, state: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        """Features (N, F) of consecutive observations (N, …), and the LSTM's state behind them."""
        dtype = next(self._body.parameters()).dtype
        if observation.dtype != torch.uint8:
            observation = observation.to(dtype)
        low = torch.bfloat16 if self._dtype is None else self._dtype
        enabled = self._dtype not in (None, dtype)
        with torch.autocast(observation.device.type, low, enabled=enabled, cache_enabled=False):
            x = features_of(self._body, observation, dtype=dtype)
        x = x.to(dtype)
        if self._lstm is None:
            return x, None
        assert state is not None
        h_T1 = []
        for x_1 in torch.split(x, 1):
            state = self._lstm(x_1, state)
            h_T1.append(state[0])
        return torch.cat(h_T1), state


def create_unroll(body: nn.Sequential, lstm: Lstm | None, *, dtype: torch.dtype | None = None) -> Unroll:
    """The fastest `Unroll` that knows every layer of `body`.

    Args:
        body: the layers.
        lstm: behind them.
        dtype: dtype of the body's computation, if not that of its parameters. Features, the LSTM and the sums
            of gradients keep theirs.
    """
    stages = stages_of(body)
    if stages is None:
        return AutogradUnroll(body, lstm, dtype=dtype)
    return FusedUnroll(stages, lstm, dtype=dtype)
