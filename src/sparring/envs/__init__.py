"""Environments with the interfaces of other packages.

`gymnasium`, `pettingzoo` and `sb3` are separate modules because each needs its own package:
import the one you want, for instance `from sparring.envs.gymnasium import SparringEnv`.
`hockey` and `cage2` have the interfaces of the packages that their games come from.
"""
