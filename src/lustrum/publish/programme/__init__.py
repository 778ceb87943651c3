"""A yearly programme: a set of prepared tables made from records, protected together, in one run."""
