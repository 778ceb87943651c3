"""Running the server: turns, logs, metrics, health and warm-up."""
