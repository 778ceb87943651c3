"""What a reader believes: a distribution for each cell, from priors and channels."""
