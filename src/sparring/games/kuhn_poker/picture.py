"""Kuhn poker as a picture."""

from sparring.games.kuhn_poker import read
from sparring.games.poker_picture import PokerPicture

PICTURE = PokerPicture(read)
