"""Files of runs: atomic writes, checkpoints with manifests, policies, snapshots, lookup."""
