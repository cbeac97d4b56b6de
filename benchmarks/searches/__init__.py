"""The parts of search_peers.py: what is searched, the two sides, and their figures."""
