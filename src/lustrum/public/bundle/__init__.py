"""Public bundles: a protected population with all that it takes to serve it where the records never were."""

from lustrum.public.bundle.files import Bundle, read_bundle
from lustrum.public.bundle.numbers import BundleNumbers

__all__ = ["Bundle", "BundleNumbers", "read_bundle"]
