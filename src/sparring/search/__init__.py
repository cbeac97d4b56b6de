"""Tree search: improves a policy's decision by simulations of the game.

`budget` says how long to search, `search` runs the native trees of csrc/search with any evaluator,
`environment` searches in copies of custom environments, with the trees of `python_tree`.
"""
