"""Public bundles: a protected population with all that it takes to serve it where the records never were."""

from lustrum.public.bundle.files import Bundle, pack_bundle, read_bundle, write_bundle
from lustrum.public.bundle.numbers import BundleNumbers

__all__ = ["Bundle", "BundleNumbers", "pack_bundle", "read_bundle", "write_bundle"]
