"""How a run looks while it trains: a live panel on a terminal, plain lines elsewhere."""

from sparring.training.display.lines import evaluation_line, line, shown_strength
from sparring.training.display.live import Display
from sparring.training.display.panel import draw

__all__ = ["Display", "draw", "evaluation_line", "line", "shown_strength"]
