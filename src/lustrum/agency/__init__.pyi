from .app import create_agency_app as create_agency_app
from .run import serve_agency as serve_agency
