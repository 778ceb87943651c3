"""Questions and view options as addresses, and back."""
