"""How fast a training is: settings timed in turn, records of benches, profiles and verdicts."""
