"""The public name of :mod:`lustrum.numeric.structure`: which cells add up to which."""

from lustrum.numeric.structure import *  # noqa: F403
