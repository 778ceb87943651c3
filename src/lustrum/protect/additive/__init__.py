"""Protected tables made additive again."""
