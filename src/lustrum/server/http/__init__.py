"""What every request passes through: languages, limits, errors, headers and templates."""
