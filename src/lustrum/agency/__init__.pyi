from .app import create_agency_app as create_agency_app
from .app import serve_agency as serve_agency
