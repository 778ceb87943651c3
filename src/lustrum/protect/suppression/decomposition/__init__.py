"""Tables with hierarchies, taken apart into sub-tables of one level each."""
