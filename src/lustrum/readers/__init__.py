"""Tables in files: read from CSV, Parquet, XLSX and JSON-stat by a layout, published or confidential.

===================================  =========================================================
:mod:`.container`, :mod:`.workbook`  the parts of a file, and what in it is no field
:mod:`.layout`, :mod:`.cells`        what everything in a file is, and its cells by that
:mod:`.propose`, :mod:`.code_sums`   a layout from the file itself, with reasons
:mod:`.judge`, :mod:`.report`        what a reader of published files can work out
:mod:`.confidential`                 the rows of a confidential file
:mod:`.true_tables`                  true tables with their contributors
:mod:`.hierarchy_files`              a hierarchy from ``.hrc``, ``.csv`` or ``.toml``
===================================  =========================================================
"""
