"""Networks, and the one masked distribution."""
