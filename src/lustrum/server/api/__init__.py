"""The HTTP API: the catalogue, tables and jobs."""
