from .app import create_agency_app as create_agency_app
from .app import serve_agency as serve_agency
from .app import serve_pages as serve_pages
from .check_pages import create_check_app as create_check_app
