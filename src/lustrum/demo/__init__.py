"""Invented data to try things on: a census and a business register, made from a seed.

- :func:`people`: a synthetic census, described in ``demo.toml``.
- :func:`businesses`: a synthetic business register, described in ``businesses.toml``.
- :func:`description_path`: where those descriptions are.
"""

from lustrum.demo.businesses import businesses
from lustrum.demo.descriptions import description_path
from lustrum.demo.population import people

__all__ = ["businesses", "description_path", "people"]
