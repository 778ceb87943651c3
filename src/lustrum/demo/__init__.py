"""Invented data to try things on: two kinds of census, a business register and a survey, made from a seed.

- :func:`people`: a synthetic census, described in ``demo.toml``.
- :func:`businesses`: a synthetic business register, described in ``businesses.toml``.
- :func:`survey`: a synthetic labour force survey, described in ``survey.toml``.
- :func:`censuses`: two synthetic censuses five years apart, described in ``censuses.toml``.
- :func:`description_path`: where those descriptions are.
"""

from lustrum.demo.census import censuses, people
from lustrum.demo.draws import description_path
from lustrum.demo.labour_force import survey
from lustrum.demo.register import businesses

__all__ = ["businesses", "censuses", "description_path", "people", "survey"]
