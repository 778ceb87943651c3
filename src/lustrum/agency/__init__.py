"""The agency's own pages, on this machine only: datasets, policies, imports, reports, usage and maps.

They work on true counts and are no part of the public server: neither imports the other. They listen on a
loopback address, and refuse requests for other hosts, from other sites and from other machines.
"""

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.agency.app import create_agency_app
    from lustrum.agency.run import serve_agency

__all__ = ["create_agency_app", "serve_agency"]

# `lustrum map` reads its files with this room and needs no web framework.
__getattr__, __dir__ = offer(__name__, {"app": "create_agency_app", "run": "serve_agency"})
