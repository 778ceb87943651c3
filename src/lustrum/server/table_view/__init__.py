"""A released table as people see it: arranged, laid out, charted and cited."""
