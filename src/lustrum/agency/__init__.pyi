from .app import create_agency_app as create_agency_app
from .app import create_check_app as create_check_app
from .app import serve_agency as serve_agency
from .app import serve_pages as serve_pages
