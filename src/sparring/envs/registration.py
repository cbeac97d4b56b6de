"""The games under the names of Gymnasium's registry, such as sparring/SkullKing-v0."""

from __future__ import annotations

from sparring.games.rules import Rules, game_names

NAMESPACE = "sparring"


def env_id(game: str) -> str:
    """Return a game's name in the registry; its version moves with that of the rules."""
    name = "".join(word.capitalize() for word in game.split("_"))
    return f"{NAMESPACE}/{name}-v{Rules(game).rules_version - 1}"


def register_games() -> None:
    """Tell Gymnasium of all games; those it knows stay as they are.

    Made by name, an environment takes every action of its space, as Gymnasium promises; see
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
