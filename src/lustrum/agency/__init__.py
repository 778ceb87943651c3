"""The agency's own pages, on this machine only: datasets, policies, imports, reports, usage and maps.

They work on true counts and are no part of the public server: neither imports the other. They listen on a
loopback address, and refuse requests for other hosts, from other sites and from other machines.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
