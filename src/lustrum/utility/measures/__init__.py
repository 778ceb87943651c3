"""The utility measures, one a file."""
