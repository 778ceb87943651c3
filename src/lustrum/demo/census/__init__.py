"""The demo census: what it asks, and the households and people who answer."""
