"""The settings with which this machine trains fastest, found by measuring."""
