"""A whole population protected once: its finest cells are changed, and every table is a count of the
result."""
