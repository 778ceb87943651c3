"""What a later release of the same people takes from the one before, and which cells are drawn again.

A cell keeps its number wherever the number is still next to its true count, whether or not its records
changed. Beside that the key draws cells, among all that have two numbers to choose from, which are drawn
again: at least the share ``refresh``, and more where many numbers cannot be kept. Which cells these are, and
where they start, depends on the key and on published numbers alone. So a number that differs says that a
record changed only where it could not be kept, and such cells stand among several times as many that were
drawn again.

A new variable refines: the parts of a cell add up to its number before, unless the cell is drawn again.
"""
