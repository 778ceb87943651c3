"""The search for a protected population: the tables it controls, its moves, sweeps and walks."""
