"""Numbers: arithmetic, compiled loops, chances, linear structure, counting, and solvers."""
