"""Prepared tables: the public folder of a yearly programme, every byte checked when it is read."""

from lustrum.public.prepared.folder import (
    PreparedFolder,
    PreparedTable,
    prepared_name,
    read_prepared,
)

__all__ = ["PreparedFolder", "PreparedTable", "prepared_name", "read_prepared"]
