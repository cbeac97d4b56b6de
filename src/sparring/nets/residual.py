"""Residual convolutional network over a board, with a policy and a value.

Blocks are relu(x + conv(relu(conv(x)))) without normalization: the second convolution of a block
is initialized to 0, which keeps deep towers stable, and rows do not depend on their batch.
"""

from __future__ import annotations

import math
import platform
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional

from sparring import _native
from sparring.config import NetConfig
from sparring.errors import ConfigError
from sparring.games.rules import Rules
from sparring.nets.board import (
    CHANNEL_STEP,
    POLICY_CHANNELS,
    VALUE_CHANNELS,
    VALUE_HIDDEN,
    board_layout,
)
from sparring.nets.heads import POLICY, SCORE, VALUE, WDL
from sparring.nets.inputs import read_memory
from sparring.nets.net import HeadOutputs, Net, NetOptions

NATIVE_IS_FASTER = platform.machine() in ("aarch64", "arm64")
"""The native convolutions use 128-bit vectors; torch has wider ones for x86."""


class ResidualNet(Net):
    """A tower of residual blocks over the game's board."""

    divisor: Tensor

    def __init__(
        self, rules: Rules, config: NetConfig, *, threads: int = 1, **options: Unpack[NetOptions]
    ) -> None:
        super().__init__(rules, config, **options)
        unknown = [name for name in self.heads if name not in (POLICY, VALUE, WDL, SCORE)]
        if unknown or (VALUE not in self.heads and (WDL in self.heads or SCORE in self.heads)):
            raise ConfigError(
                "a residual net has the heads policy and value, and with a value wdl and "
                f"score, not {', '.join(unknown or self.heads)}"
            )
        if config.channels < 1 or config.blocks < 1:
            raise ConfigError(
                f"net.channels {config.channels} and net.blocks {config.blocks} must be at least 1"
            )
        self.layout = board_layout(rules)
        at, channels, memory = self.layout, config.channels, self.inputs.memory
        self.stem = nn.Conv2d(at.planes, channels, 3, padding=1)
        self.numbers = nn.Linear(at.numbers, channels, bias=False) if at.numbers else None
        self.memory = nn.Linear(memory // 4, channels, bias=False) if memory else None
        self.tower = [ResidualBlock(channels) for _ in range(config.blocks)]
        self.blocks = nn.Sequential(*self.tower)
        self.policy_head: nn.Conv2d | nn.Linear
        if POLICY in self.heads and at.actions:
            self.policy_head = nn.Conv2d(channels, at.actions, 1, bias=False)
            self.policy_bias = nn.Parameter(torch.zeros(rules.actions))
        elif POLICY in self.heads:
            self.policy_map = nn.Conv2d(channels, POLICY_CHANNELS, 1)
            self.policy_head = nn.Linear(POLICY_CHANNELS * at.squares, rules.actions)
        if VALUE in self.heads:
            self.value_map = nn.Conv2d(channels, VALUE_CHANNELS, 1)
            self.value_hidden = nn.Linear(VALUE_CHANNELS * at.squares, VALUE_HIDDEN)
            self.value_head = nn.Linear(VALUE_HIDDEN, 1)
        if WDL in self.heads:
            self.wdl_head = nn.Linear(VALUE_HIDDEN, self.heads[WDL])
        if SCORE in self.heads:
            self.score_head = nn.Linear(VALUE_HIDDEN, self.heads[SCORE])
        self.register_buffer("divisor", torch.tensor(at.divisors), persistent=False)
        self.native = None
        fits = channels % CHANNEL_STEP == 0 and not memory
        if config.sparse and NATIVE_IS_FASTER and fits:
            size = at.height, at.width
            self.native = _native.Convolutions(*size, at.planes, rules.runs, threads)
        self.has_convolutions = self.native is None
        if not self.stem.weight.is_meta:  # where drawing would load torch's compiler, for nothing
            self._initialize()

    def _initialize(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        # A square has at most one piece: nearly all of its planes are 0, where Kaiming
        # initialization expects inputs of size 1.
        with torch.no_grad():
            self.stem.weight.mul_(math.sqrt(self.layout.planes / 2))
        for block in self.tower:
            nn.init.zeros_(block.second.weight)
        if POLICY in self.heads:
            # A dense head sums all squares.
            summed = 1 if self.layout.actions else self.layout.squares
            nn.init.normal_(self.policy_head.weight, std=0.01 / math.sqrt(summed))
        for name in (VALUE, WDL, SCORE):
            if name in self.heads:
                nn.init.zeros_(getattr(self, f"{name}_head").weight)

    def forward(self, obs: Tensor) -> HeadOutputs:
        if self.native and obs.device.type == "cpu" and self.dtype == torch.float32:
            return self.head_outputs(self.native_tower(obs))
        at = self.layout
        used = at.planes * at.squares
        divisor, numbers_divisor = self.divisor[: at.planes], self.divisor[at.planes :]
        planes = obs[:, :used].to(self.dtype).reshape(-1, at.planes, at.height, at.width)
        planes = (planes / divisor[:, None, None]).contiguous(memory_format=torch.channels_last)
        x = self.stem(planes)
        if self.numbers is not None:
            numbers = obs[:, used : used + at.numbers].to(self.dtype) / numbers_divisor
            x = x + self.numbers(numbers)[:, :, None, None]
        if self.memory is not None:
            memory = read_memory(self.inputs, obs).to(self.dtype)
            x = x + self.memory(memory)[:, :, None, None]
        return self.head_outputs(self.blocks(functional.relu(x)).permute(0, 2, 3, 1))

    def native_tower(self, obs: Tensor) -> Tensor:
        """Run stem and blocks with native convolutions [rows, height, width, channels]."""
        at, native = self.layout, self.native
        numbers = torch.zeros(self.config.channels, 0)
        if self.numbers is not None:
            numbers = self.numbers.weight
        run_stem: Any = NativeStem.apply
        run_block: Any = NativeBlock.apply
        x: Tensor = run_stem(
            obs, self.stem.weight, numbers, self.stem.bias, native, (at.height, at.width)
        )
        for block in self.tower:
            first, second = block.first, block.second
            x = run_block(x, first.weight, first.bias, second.weight, second.bias, native)
        return x

    def head_outputs(self, x: Tensor) -> HeadOutputs:
        """Return the outputs of all heads for the tower's [rows, height, width, channels]."""
        outputs: HeadOutputs = {}
        if POLICY in self.heads:
            outputs[POLICY] = self.logits(x)
        if VALUE in self.heads:
            hidden = functional.relu(self.value_hidden(map_squares(self.value_map, x)))
            outputs[VALUE] = self.value_head(hidden).squeeze(-1)
            outputs |= {
                n: getattr(self, f"{n}_head")(hidden) for n in (WDL, SCORE) if n in self.heads
            }
        return outputs

    def logits(self, x: Tensor) -> Tensor:
        """Return the policy's logits: a map for every action of a square, or a dense head."""
        if not self.layout.actions:
            dense: Tensor = self.policy_head(map_squares(self.policy_map, x))
            return dense
        maps = functional.linear(x, self.policy_head.weight.flatten(1))
        return maps.flatten(1, 2).transpose(1, 2).flatten(1) + self.policy_bias

    @property
    def dtype(self) -> torch.dtype:
        return self.stem.weight.dtype


class ResidualBlock(nn.Module):
    """Two convolutions with a skip connection."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        added: Tensor = self.second(functional.relu(self.first(x)))
        return functional.relu(x + added)


def map_squares(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """Return relu(1x1 convolution) of [rows, height, width, channels] as [rows, squares * maps]."""
    maps = functional.linear(x, layer.weight.flatten(1), layer.bias)
    return functional.relu(maps).flatten(1)


class NativeStem(torch.autograd.Function):
    """relu(conv(planes) + numbers @ number_weight + bias), from observation bytes."""

    @staticmethod
    def forward(  # noqa: PLR0917 -- autograd takes no names
        ctx: Any,
        obs: Tensor,
        weight: Tensor,
        number_weight: Tensor,
        bias: Tensor,
        native: _native.Convolutions,
        shape: tuple[int, int],
    ) -> Tensor:
        obs = obs.contiguous()
        out = torch.empty(len(obs), *shape, weight.shape[0])
        kernel, numbers = taps_first(weight), number_weight.detach().T.contiguous()
        native.stem(
            obs.numpy(), kernel.numpy(), numbers.numpy(), bias.detach().numpy(), out.numpy()
        )
        ctx.save_for_backward(out)
        ctx.obs, ctx.native = obs, native
        ctx.shapes = kernel.shape, numbers.shape
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        (out,) = ctx.saved_tensors
        kernel, numbers = (torch.empty(shape) for shape in ctx.shapes)
        bias = torch.empty(out.shape[-1])
        arrays = relu_backward(grad, out).numpy(), kernel.numpy(), numbers.numpy(), bias.numpy()
        ctx.native.stem_gradient(ctx.obs.numpy(), *arrays)
        return None, taps_last(kernel), numbers.T, bias, None, None


class NativeBlock(torch.autograd.Function):
    """relu(x + conv(relu(conv(x))))."""

    @staticmethod
    def forward(  # noqa: PLR0917 -- autograd takes no names
        ctx: Any,
        x: Tensor,
        first: Tensor,
        first_bias: Tensor,
        second: Tensor,
        second_bias: Tensor,
        native: _native.Convolutions,
    ) -> Tensor:
        x = x.detach().contiguous()
        inside = convolve(native, x, taps_first(first), first_bias, relu=True)
        out = convolve(native, inside, taps_first(second), second_bias, onto=x, relu=True)
        ctx.save_for_backward(x, inside, out, first, second)
        ctx.native = native
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, inside, out, first, second = ctx.saved_tensors
        native = ctx.native
        grad = relu_backward(grad, out)
        second_grads = kernel_gradient(native, inside, grad, second)
        inside_grad = convolve(native, grad, transposed_kernel(second), mask=inside)
        first_grads = kernel_gradient(native, x, inside_grad, first)
        x_grad = convolve(native, inside_grad, transposed_kernel(first), onto=grad)
        return x_grad, *first_grads, *second_grads, None


def convolve(
    native: _native.Convolutions,
    x: Tensor,
    kernel: Tensor,
    bias: Tensor | None = None,
    *,
    onto: Tensor | None = None,
    mask: Tensor | None = None,
    relu: bool = False,
) -> Tensor:
    """Return conv(x) + bias + onto, with relu, or 0 where `mask` is not positive."""
    out = torch.empty(*x.shape[:-1], kernel.shape[-1])
    added = None if bias is None else bias.detach().numpy()
    summed, masked = (None if t is None else t.numpy() for t in (onto, mask))
    native.apply(x.numpy(), kernel.numpy(), added, summed, masked, relu, out.numpy())
    return out


def kernel_gradient(
    native: _native.Convolutions, x: Tensor, grad: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of a weight in torch's layout, and of its bias."""
    kernel, bias = torch.empty_like(taps_first(weight)), torch.empty(len(weight))
    native.kernel_gradient(x.numpy(), grad.numpy(), kernel.numpy(), bias.numpy())
    return taps_last(kernel), bias


def taps_first(weight: Tensor) -> Tensor:
    """Return torch's weight [out, in, 3, 3] as [3, 3, in, out]."""
    return weight.detach().permute(2, 3, 1, 0).contiguous()


def taps_last(kernel: Tensor) -> Tensor:
    """Return a kernel [3, 3, in, out] as torch's weight [out, in, 3, 3]."""
    return kernel.permute(3, 2, 0, 1).contiguous()


def transposed_kernel(weight: Tensor) -> Tensor:
    """Return the kernel of a convolution's input gradient [3, 3, out, in]."""
    return weight.detach().flip(2, 3).permute(2, 3, 0, 1).contiguous()


def relu_backward(grad: Tensor, out: Tensor) -> Tensor:
    """Return the gradient of a relu's input, from that of its output `out`."""
    before: Tensor = torch.ops.aten.threshold_backward(grad.contiguous(), out, 0)
    return before
