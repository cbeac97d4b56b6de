"""The USI protocol: sparring as a Shogi engine, and matches against other engines."""

GAME = "shogi"
