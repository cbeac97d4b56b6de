"""Convolutional networks over pixels: the one of DQN (nature) and IMPALA's small one.

Pixels are bytes in rows, in a rollout and in a replay; for the network they are within 0..1.
Stacked frames (net.memory stack) follow the observation as bytes and become channels, the oldest
first.
"""

from __future__ import annotations

import math
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring.config import NetConfig
from sparring.config.learning import NATURE_LEAST
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.layers import orthogonal_
from sparring.nets.mlp import LinearHeads
from sparring.nets.net import HeadOutputs, NetOptions
from sparring.pools.custom.cache import pixels_of
from sparring.pools.custom.encoding import PIXEL
from sparring.pools.custom.layout import Pixels

GAIN = math.sqrt(2)
"""Of layers before a ReLU."""
NATURE_LAYERS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, kernel and stride of its convolutions (Mnih et al., 2015)."""
NATURE_WIDTH = 512
IMPALA_CHANNELS = (16, 32, 32)
"""Channels of its stages (Espeholt et al., 2018)."""
IMPALA_BLOCKS = 2
IMPALA_WIDTH = 256


class PixelNet(LinearHeads):
    """Convolutions over pixels, one wide layer, and linear heads."""

    has_convolutions = True
    width: int
    """Of the layer that heads read."""
    least = 1
    """Smallest height and width of pixels."""

    def __init__(
        self, rules: Rules, config: NetConfig, *, threads: int = 1, **options: Unpack[NetOptions]
    ) -> None:
        super().__init__(rules, config, **options)
        self.pixels = self.checked_pixels(rules)
        self.frames = config.frames if config.memory == "stack" else 1
        channels, (height, width) = self.pixels.channels * self.frames, self.pixels.size
        self.convolutions = self.make_convolutions(channels)
        self.hidden = nn.Linear(self.maps(height, width), self.width)
        self.make_heads(rules, self.width)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                orthogonal_(layer.weight, GAIN)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        for block in self.modules():
            if isinstance(block, ImpalaBlock):  # deep towers begin as shallow ones
                nn.init.zeros_(block.second.weight)
        self.initialize_heads()

    @staticmethod
    def make_convolutions(channels: int) -> nn.Sequential:
        """Return the layers before the wide one, ending in a ReLU."""
        raise NotImplementedError

    @staticmethod
    def maps(height: int, width: int) -> int:
        """Return how many numbers the convolutions make of pixels."""
        raise NotImplementedError

    def checked_pixels(self, rules: Rules) -> Pixels:
        """Return the pixels of a game; raise if there are none, or too few."""
        pixels, kind = pixels_of(rules), f"net.kind {self.config.kind}"
        if pixels is None:
            raise ConfigError(
                f"{kind} needs pixels as observations, and {rules.name} has others: "
                "use --net.kind mlp"
            )
        height, width = pixels.size
        if min(height, width) < self.least:
            raise ConfigError(
                f"{kind} needs {self.least} x {self.least} pixels or more, and {rules.name} has "
                f"{height} x {width}: use --net.kind impala"
            )
        return pixels

    def forward(self, obs: Tensor) -> HeadOutputs:
        first, *rest = self.convolutions
        assert isinstance(first, nn.Conv2d)
        # There are fewer weights than pixels to divide.
        x = functional.conv2d(
            self.planes(obs), first.weight / PIXEL, first.bias, first.stride, first.padding
        )
        for layer in rest:
            x = layer(x)
        x = functional.relu(self.hidden(x.flatten(1)))
        return {name: self.head_output(name, x) for name in self.heads}

    def planes(self, obs: Tensor) -> Tensor:
        """Return the pixels of byte rows as floats [rows, channels, height, width], 0 to 255.

        In memory channels are innermost, which makes torch's convolutions faster; bytes are put in
        that order before they are widened.
        """
        count, first, frames = self.pixels.count, self.inputs.rules.obs_bytes, self.frames
        older = [obs[:, first + at * count :][:, :count] for at in reversed(range(frames - 1))]
        (height, width), shape = self.pixels.size, self.pixels.shape
        in_planes = len(shape) == 2 or self.pixels.channels_first
        inner = 1 if in_planes else shape[-1]
        parts = [
            part
            for frame in (*older, obs[:, :count])
            for part in frame.reshape(
                -1, count // (height * width * inner), height * width, inner
            ).unbind(1)
        ]
        x = torch.cat(parts, 2).reshape(-1, height, width, inner * len(parts))
        return x.permute(0, 3, 1, 2).to(self.hidden.weight.dtype)

    def next_memory(self, obs: Tensor, outputs: HeadOutputs) -> Tensor | None:
        """Return the bytes of each row's frames without the oldest, four to a number."""
        return self.next_frames(obs).view(torch.float32) if self.frames > 1 else None

    def next_frames(self, obs: Tensor) -> Tensor:
        """Return each row's pixels followed by the frames in its memory, without the oldest."""
        count, first = self.pixels.count, self.inputs.rules.obs_bytes
        kept = obs[:, first : first + (self.frames - 2) * count]
        padding = self.inputs.memory - (self.frames - 1) * count
        return functional.pad(torch.cat((obs[:, :count], kept), 1), (0, padding))


class NatureNet(PixelNet):
    """Three strided convolutions, as DQN played Atari games with."""

    width, least = NATURE_WIDTH, NATURE_LEAST

    @staticmethod
    def make_convolutions(channels: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for out, kernel, stride in NATURE_LAYERS:
            layers += [nn.Conv2d(channels, out, kernel, stride), nn.ReLU()]
            channels = out
        return nn.Sequential(*layers)

    @staticmethod
    def maps(height: int, width: int) -> int:
        for _, kernel, stride in NATURE_LAYERS:
            height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        return NATURE_LAYERS[-1][0] * height * width


class ImpalaNet(PixelNet):
    """Three stages of a convolution, max-pooling and two residual blocks."""

    width = IMPALA_WIDTH

    @staticmethod
    def make_convolutions(channels: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for out in IMPALA_CHANNELS:
            layers += [nn.Conv2d(channels, out, 3, padding=1), nn.MaxPool2d(3, 2, padding=1)]
            layers += [ImpalaBlock(out) for _ in range(IMPALA_BLOCKS)]
            channels = out
        return nn.Sequential(*layers, nn.ReLU())

    @staticmethod
    def maps(height: int, width: int) -> int:
        pooled = 1 << len(IMPALA_CHANNELS)
        return IMPALA_CHANNELS[-1] * -(-height // pooled) * -(-width // pooled)


class ImpalaBlock(nn.Module):
    """x + conv(relu(conv(relu(x))))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        added: Tensor = self.second(functional.relu(self.first(functional.relu(x))))
        return x + added


PIXEL_NETS: dict[str, type[PixelNet]] = {"nature": NatureNet, "impala": ImpalaNet}
"""By net.kind."""
