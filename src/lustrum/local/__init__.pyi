from .crosstabs import ProtectedTable as ProtectedTable
from .crosstabs import crosstab as crosstab
from .crosstabs import pivot_table as pivot_table
from .service import health as health
from .service import local_service as local_service
