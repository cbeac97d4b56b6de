"""What lies on disk: atomic files, checkpoints with manifests, policies, and where runs are."""
