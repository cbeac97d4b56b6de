"""sparring's games as other people's environments.

`gymnasium`, `pettingzoo` and `sb3` are separate modules because each needs its own package:
import the one you want, for instance `from sparring.envs.gymnasium import SparringEnv`. `cage2` has
one game's original interface.
"""
