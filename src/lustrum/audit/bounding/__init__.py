"""The least and the most that each cell can be: by network flow, program, elimination and search."""
