"""What benchmarks share that hold several sides against each other: words, cores, processes."""
