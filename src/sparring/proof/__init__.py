"""Checks of games, pools, custom environments, ports, and exact exploitability."""
