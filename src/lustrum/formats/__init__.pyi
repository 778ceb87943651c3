from .about import About as About
from .csv import Csv as Csv
from .csv import CsvDescription as CsvDescription
from .jsonstat import JsonStat as JsonStat
from .parquet import Parquet as Parquet
from .write import release_as_arrow as release_as_arrow
from .write import write_release as write_release
from .xlsx import Xlsx as Xlsx
