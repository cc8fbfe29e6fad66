"""A network's body over the decisions of one update, with a hand-written backward pass.

Read `workers.engine.nn.autograd.AutogradUnroll` first; this computes the same, faster.

An actor takes one state at a time. Under autograd every decision would have a graph of its own, and the
backward passes through t_max such graphs cost several times that of one batch. A second, batched forward pass
over the same states costs a fifth of an actor's time. So the activations of acting are kept, and the backward
pass takes them as one batch: the same gradient without a second forward pass. theta must not change between
acting and the backward pass. `torch.compile` cannot do this: the environment answers between two decisions,
so each is a graph of its own.

Updates of equally many decisions use the same memory from the second on, so that CUDA graphs can record them
(`workers.engine.nn.graphs`).
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from workers.engine.nn.centre import Centre, centre_of
from workers.engine.nn.fast.lstm import FusedLstm
from workers.engine.nn.linear import Linear, add_gradient_, add_product_, product
from workers.engine.nn.networks import Halve, Lstm, Standardise, as_input, features_of


class Stage(NamedTuple):
    """A layer with parameters, and what follows it."""

    layer: nn.Conv2d | nn.Linear
    activation: nn.Module | None
    is_flattened: bool


class Stages(NamedTuple):
    """A body as the hand-written backward pass sees it."""

    before: nn.Sequential
    """Layers before the first parameters."""
    stages: list[Stage]


def stages_of(body: nn.Sequential) -> Stages | None:
    """The stages of a body; None if it has a layer, or an order of layers, without a backward pass here."""
    before, stages = nn.Sequential(), list[Stage]()
    for layer in body:
        last = stages[-1] if stages else None
        if isinstance(layer, nn.Conv2d | nn.Linear) and _is_plain(layer) and _fits(layer, last):
            stages.append(Stage(layer, None, False))
        elif last is None and isinstance(layer, Centre | Halve | Standardise):
            before.append(layer)
        elif last is not None and last.activation is None and _is_known_activation(layer):
            stages[-1] = last._replace(activation=layer)
        elif last is not None and _flattens_all(layer) and isinstance(last.layer, nn.Conv2d):
            stages[-1] = last._replace(is_flattened=True)
        else:
            return None
    return Stages(before, stages) if stages else None


def _is_plain(layer: nn.Conv2d | nn.Linear) -> bool:
    """Whether a layer has just the settings that `FusedUnroll` computes, and no other forward pass."""
    if layer.bias is None:
        return False
    if isinstance(layer, nn.Linear):
        return type(layer) in (nn.Linear, Linear)
    plain = layer.groups == 1 and layer.dilation == (1, 1) and layer.padding_mode == "zeros"
    return type(layer) is nn.Conv2d and plain and isinstance(layer.padding, tuple)


def _fits(layer: nn.Conv2d | nn.Linear, last: Stage | None) -> bool:
    """Whether convolutions come first and are flattened before a linear layer."""
    if last is None:
        return True
    is_flat = isinstance(last.layer, nn.Linear) or last.is_flattened
    return is_flat == isinstance(layer, nn.Linear)


def _is_known_activation(layer: nn.Module) -> bool:
    return isinstance(layer, nn.ReLU | nn.Tanh) or (isinstance(layer, nn.ELU) and layer.alpha == 1.0)


def _flattens_all(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Flatten) and (layer.start_dim, layer.end_dim) == (1, -1)


class _Activations:
    """A layer's outputs for consecutive decisions, in memory that the next update uses again."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self._all = torch.empty(0, dtype=dtype, device=device)
        self._rows: list[Tensor] = []

    def memory_for(self, t: int, shape: torch.Size) -> Tensor:
        """Memory for the outputs of decision t; the shape, batch first, is the same each time."""
        if t == len(self._rows):
            kept, B = self.batch_until(t), shape[0]
            layout = torch.channels_last if len(shape) == 4 else torch.contiguous_format
            size = (max(1, 2 * t) * B, *shape[1:])
            self._all = torch.empty(size, dtype=kept.dtype, device=kept.device, memory_format=layout)
            if t:
                self._all[: len(kept)] = kept
            self._rows = list(torch.split(self._all, B))
        return self._rows[t]

    def batch_until(self, t: int) -> Tensor:
        """The outputs of the first t decisions as one batch."""
        return self._all[: t * len(self._rows[0])] if self._rows else self._all


class FusedUnroll:
    """A body of known layers, and perhaps an LSTM behind it; see `workers.engine.nn.autograd.Unroll`."""

    state: tuple[Tensor, Tensor] | None
    reuses_memory = True

    def __init__(self, stages: Stages, lstm: Lstm | None, *, dtype: torch.dtype | None = None) -> None:
        """Keep the activations of `stages`.

        Args:
            stages: stages of the body, by `stages_of`.
            lstm: the LSTM behind the body; None for none.
            dtype: dtype of the body's computation, if not that of its parameters. Features, the LSTM and the
                sums of gradients keep theirs.
        """
        self._before, self._stages = stages
        self._centre = centre_of(self._before)
        self._reads_pixels = list(self._before) == ([] if self._centre is None else [self._centre])
        """Whether the first stage's input is computed from the pixels in one pass: nothing but centring, if
        that, stands before it."""
        weight = self._stages[0].layer.weight
        self._own_dtype = weight.dtype
        self._dtype = dtype or self._own_dtype
        # The parameters' own memory, or copies in another dtype, which `begin` refreshes.
        self._parameters = [
            (stage.layer.weight.detach().to(self._dtype), _bias(stage.layer).detach().to(self._dtype))
            for stage in self._stages
        ]
        # `_kept[k]`: the inputs of stage k, decision by decision; the last one: the body's features.
        self._kept = [_Activations(self._dtype, weight.device) for _ in range(len(self._stages) + 1)]
        self._lstm = None if lstm is None else FusedLstm(lstm)
        self._t = 0
        self.reset_state()
        self.begin()

    @torch.no_grad()
    def begin(self) -> None:
        """Begin an update: drop the activations and read the parameters; the LSTM's state stays."""
        self._t = 0
        self._out: list[Tensor] = []
        self._state_before = self.state
        if self._dtype != self._own_dtype:
            for stage, (weight, bias) in zip(self._stages, self._parameters, strict=True):
                weight.copy_(stage.layer.weight)
                bias.copy_(_bias(stage.layer))
        if self._lstm is not None:
            self._lstm.begin()

    def reset_state(self) -> None:
        """Begin an episode."""
        self.state = None if self._lstm is None else self._lstm.zero_state()

    @torch.no_grad()
    def step(self, observation: Tensor) -> Tensor:
        """Features (B, F) of the next decision's state, valid until the next update."""
        x = self._forward(self._t, observation)
        self._t += 1
        if self._lstm is not None:
            assert self.state is not None
            self._state_before = self.state
            x, self.state = self._lstm.step(x, self.state)
            self._out.append(x)
        return x

    def drop_last(self) -> None:
        """Drop the last decision as if it had not been taken."""
        self._t -= 1
        if self._lstm is not None:
            self._out.pop()
            self._lstm.drop_last()
            self.state = self._state_before

    @torch.no_grad()
    def peek(self, observation: Tensor) -> Tensor:
        """Features (B, F) of a state on which no decision is taken."""
        x = features_of(self._before, observation, dtype=self._own_dtype).to(self._dtype)
        for k, stage in enumerate(self._stages):
            x = self._layer(k, x)
            _activate(stage.activation, x, out=x)
            if stage.is_flattened:
                x = x.flatten(1)
        x = x.to(self._own_dtype)
        if self._lstm is not None:
            assert self.state is not None
            x = self._lstm.peek(x, self.state)
        return x

    def features(self) -> Tensor:
        """Features (T B, F) of all decisions of the update, a leaf whose gradient `backward` takes."""
        if self._lstm is not None:
            return torch.cat(self._out).requires_grad_()
        return self._kept[-1].batch_until(self._t).to(self._own_dtype, copy=True).requires_grad_()

    @torch.no_grad()
    def backward(self, d_features_TF: Tensor) -> None:
        """Add the parameters' gradient to their existing `grad`, given the features' gradient (T B, F).

        From the last stage to the first, d is the gradient of the stage's outputs, then of its inputs.
        """
        d = d_features_TF if self._lstm is None else self._lstm.backward(d_features_TF)
        d = d.to(self._dtype)
        outputs = self._kept[-1].batch_until(self._t)
        for k in range(len(self._stages) - 1, -1, -1):
            layer, activation, is_flattened = self._stages[k]
            inputs = self._kept[k].batch_until(self._t)
            if is_flattened:
                assert isinstance(layer, nn.Conv2d)
                d, outputs = (_unflatten(x, layer.out_channels, inputs, layer) for x in (d, outputs))
            d = _backward_activation(activation, d, outputs)
            d = _backward_layer(layer, self._parameters[k][0], d, inputs, need_input=k > 0)
            outputs = inputs

    def _forward(self, t: int, observation: Tensor) -> Tensor:
        """The body's features of the state of decision t."""
        if observation.dtype != torch.uint8 or not self._reads_pixels:
            x = features_of(self._before, observation, dtype=self._own_dtype)
            x = self._kept[0].memory_for(t, x.shape).copy_(x)
        else:
            B, height, width, channels = observation.shape
            x = self._kept[0].memory_for(t, torch.Size((B, channels, height, width)))
            if self._centre is None:
                as_input(observation, out=x)
            else:
                self._centre.centred(observation, out=x.permute(0, 2, 3, 1))
        for k, stage in enumerate(self._stages):
            y = self._layer(k, x)
            shape = torch.Size((len(y), y[0].numel())) if stage.is_flattened else y.shape
            row = self._kept[k + 1].memory_for(t, shape)
            _activate(stage.activation, y, out=row.view(y.shape) if stage.is_flattened else row)
            x = row
        return x.to(self._own_dtype)

    def _layer(self, k: int, x: Tensor) -> Tensor:
        layer, (weight, bias) = self._stages[k].layer, self._parameters[k]
        if isinstance(layer, nn.Conv2d):
            assert isinstance(layer.padding, tuple)
            return torch.conv2d(x, weight, bias, layer.stride, layer.padding)
        return product(x, weight, bias)


def _unflatten(x: Tensor, channels: int, inputs: Tensor, layer: nn.Conv2d) -> Tensor:
    height, width = (
        (inputs.shape[2 + k] + 2 * int(layer.padding[k]) - layer.kernel_size[k]) // layer.stride[k] + 1
        for k in range(2)
    )
    return x.view(len(x), channels, height, width)


def _activate(activation: nn.Module | None, x: Tensor, *, out: Tensor) -> None:
    match activation:
        case nn.ReLU():
            torch.clamp_min(x, 0, out=out)
        case nn.ELU():
            torch.ops.aten.elu.out(x, out=out)
        case nn.Tanh():
            torch.tanh(x, out=out)
        case _:
            out.copy_(x)


def _backward_activation(activation: nn.Module | None, d: Tensor, y: Tensor) -> Tensor:
    """Gradient of an activation's input from that of its output y."""
    d_x: Tensor = d
    match activation:
        case nn.ReLU():
            d_x = torch.ops.aten.threshold_backward(d, y, 0.0)
        case nn.ELU():
            d_x = torch.clamp_max(y, 0).add_(1).mul_(d)  # 1 above 0, else exp(x), which is y + 1
        case nn.Tanh():
            d_x = torch.ops.aten.tanh_backward(d, y)
    return d_x


def _backward_layer(
    layer: nn.Conv2d | nn.Linear, weight: Tensor, d: Tensor, x: Tensor, *, need_input: bool
) -> Tensor:
    """Gradient of a layer's input x from that of its output; the parameters' is added to their `grad`.

    Without `need_input`, what it returns means nothing.
    """
    d_x: Tensor
    if isinstance(layer, nn.Conv2d):
        d_x, d_weight, d_bias = torch.ops.aten.convolution_backward(
            d,
            x,
            weight,
            [layer.out_channels],
            layer.stride,
            layer.padding,
            layer.dilation,
            False,
            [0, 0],
            1,
            [need_input, True, True],
        )
        add_gradient_(layer.weight, d_weight)
    else:
        d_x = product(d, weight.t()) if need_input else d
        add_product_(layer.weight, d.t(), x)
        d_bias = d.sum(0)
    add_gradient_(_bias(layer), d_bias)
    return d_x


def _bias(layer: nn.Conv2d | nn.Linear) -> Tensor:
    assert layer.bias is not None
    return layer.bias
