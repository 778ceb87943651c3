"""How a reader reads a published file: layout, numbers, symbols, and columns beside the values."""
