"""Registers the games with Gymnasium, as sparring/SkullKing-v0."""

from __future__ import annotations

from sparring.games.rules import Rules, game_names

NAMESPACE = "sparring"


def env_id(game: str) -> str:
    """Return a game's id in the registry; its version follows that of the rules."""
    name = "".join(word.capitalize() for word in game.split("_"))
    return f"{NAMESPACE}/{name}-v{Rules(game).rules_version - 1}"


def register_games() -> None:
    """Register all games that are not registered yet.

    An environment made by id accepts every action of its space, as Gymnasium requires; see
    `illegal` of `SparringEnv`.
    """
    import gymnasium

    for game in game_names():
        if env_id(game) not in gymnasium.registry:
            gymnasium.register(
                env_id(game),
                entry_point="sparring.envs.gymnasium:SparringEnv",
                vector_entry_point="sparring.envs.gymnasium:SparringVectorEnv",
                kwargs={"game": game, "illegal": "random"},
            )
