"""The demo labour force survey: what it asks, and the sample that answers."""
