"""The agency's own page: maps of risk against utility, on this machine only.

It works on true counts and is no part of the public server: neither imports the other. It listens on a loopback
address, and refuses requests for other hosts, from other sites and from other machines.
"""

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.agency.app import create_agency_app
    from lustrum.agency.run import serve_agency

__all__ = ["create_agency_app", "serve_agency"]

# `lustrum map` reads its files with this room and needs no web framework.
__getattr__, __dir__ = offer(__name__, {"app": "create_agency_app", "run": "serve_agency"})
