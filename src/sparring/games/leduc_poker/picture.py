"""Leduc poker as a picture."""

from sparring.games.leduc_poker import read
from sparring.games.poker_picture import PokerPicture

PICTURE = PokerPicture(read)
