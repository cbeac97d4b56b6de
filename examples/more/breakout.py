"""Breakout from pixels, as an environment of your own: 42 x 42 gray pixels, three actions.

    sparring train examples/more/breakout.py:make_env --net.memory stack --minutes 5
    sparring play latest

A ball falls from a random place; a paddle that misses it ends the game, and each brick pays 1. One
picture does not show where the ball flies: --net.memory stack shows the last four.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

SIDE = 42
BRICKS = (4, 7)
"""Rows and columns."""
TOP = 12
"""Row of pixels where the bricks begin."""
BRICK = (2, 6)
"""Pixels of a brick, down and across."""
BALL, PADDLE, STRIDE = 2, 10, 3
"""Pixels of the ball and of the paddle, and how far the paddle moves in a step."""
BOTTOM = SIDE - 2 * BALL
"""Row of the paddle."""
LONGEST = 1000
"""Steps of the longest game; it is truncated then."""
BRIGHT_BALL, BRIGHT_PADDLE, BRIGHT_BRICK = 255, 160, 100
LEFT, STAY, RIGHT = range(3)

Pixels = npt.NDArray[np.uint8]


class Breakout(gymnasium.Env[Pixels, int]):
    """A wall, a ball and a paddle. The place of a hit on the paddle decides where the ball goes."""

    observation_space = spaces.Box(0, 255, (SIDE, SIDE, 1), np.uint8)
    action_space = spaces.Discrete(3)
    action_names = ("left", "stay", "right")
    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.bricks = np.ones(BRICKS, np.bool_)
        self.x = self.y = self.right = self.down = self.paddle = self.steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Pixels, dict[str, Any]]:
        super().reset(seed=seed)
        self.bricks[:] = True
        self.x = int(self.np_random.integers(SIDE - BALL + 1))
        self.y = TOP + BRICKS[0] * BRICK[0] + BALL
        self.right, self.down = int(self.np_random.choice([-2, -1, 1, 2])), BALL
        self.paddle, self.steps = (SIDE - PADDLE) // 2, 0
        return self.picture(), {}

    def step(self, action: int) -> tuple[Pixels, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.paddle = min(max(self.paddle + STRIDE * (int(action) - 1), 0), SIDE - PADDLE)
        self.x, self.y = self.x + self.right, self.y + self.down
        if not 0 <= self.x <= SIDE - BALL:
            self.x, self.right = min(max(self.x, 0), SIDE - BALL), -self.right
        if self.y < 0:
            self.y, self.down = 0, BALL
        reward = float(self.hit_brick())
        missed = self.y >= BOTTOM and not self.hit_paddle()
        return self.picture(), reward, missed, not missed and self.steps >= LONGEST, {}

    def hit_brick(self) -> bool:
        """Break the brick under the ball, if there is one, and turn the ball around."""
        row, column = (self.y - TOP) // BRICK[0], (self.x + BALL // 2) // BRICK[1]
        if not 0 <= row < BRICKS[0] or not self.bricks[row, column]:
            return False
        self.bricks[row, column] = False
        self.down = -self.down
        if not self.bricks.any():
            self.bricks[:] = True
        return True

    def hit_paddle(self) -> bool:
        """Send the ball up again if the paddle is under it."""
        place = self.x + BALL - self.paddle
        if not 0 < place < PADDLE + BALL:
            return False
        self.y, self.down = BOTTOM - BALL, -BALL
        self.right = (-2, -1, 1, 2)[4 * place // (PADDLE + BALL)]
        return True

    def picture(self) -> Pixels:
        """Draw wall, ball and paddle."""
        pixels = np.zeros((SIDE, SIDE, 1), np.uint8)
        wall = self.bricks.repeat(BRICK[0], 0).repeat(BRICK[1], 1)
        pixels[TOP : TOP + len(wall), :, 0] = wall * BRIGHT_BRICK
        pixels[BOTTOM : BOTTOM + BALL, self.paddle : self.paddle + PADDLE] = BRIGHT_PADDLE
        pixels[self.y : self.y + BALL, self.x : self.x + BALL] = BRIGHT_BALL
        return pixels

    def render(self) -> Any:
        """The picture, eight times as large."""
        return self.picture().repeat(8, 0).repeat(8, 1).repeat(3, 2)


def make_env(render_mode: str | None = None) -> Breakout:
    """Make one environment."""
    return Breakout(render_mode)
