"""Training with several processes: actors, replicas, and Ray clusters. Imported only when used."""
