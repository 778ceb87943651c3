"""`lustrum suppress`: confidential tables in files, protected together, and what may be published of them."""

from lustrum.cli.suppression.command import suppress_files
from lustrum.cli.suppression.files import SuppressFiles

__all__ = ["SuppressFiles", "suppress_files"]
