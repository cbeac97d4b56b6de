"""Drawing: charts of runs, pictures and films of games, tables in a terminal."""
