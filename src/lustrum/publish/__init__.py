"""From records, files or frames to something published: count, judge, protect, audit, write."""
