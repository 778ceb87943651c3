"""Tables in files: read from CSV, Parquet, XLSX and JSON-stat by a layout, published or confidential.

=============================================  =====================================================
:mod:`.container`, :mod:`.workbook`            the parts of a file, and what in it is no field
:mod:`.layout`, :mod:`.cells`                  what everything in a file is, and its cells by that
:mod:`.propose`, :mod:`.relations`             a layout from the file itself, with reasons
:func:`~.judge.open_file`, :func:`~.judge.judge`  what a reader of published files can work out
:func:`~.confidential.read_true`               the rows of a confidential file
:func:`~.true_tables.true_table`               a true table with its contributors
:func:`~.hierarchy_files.read_groups`          a hierarchy from ``.hrc``, ``.csv`` or ``.toml``
=============================================  =====================================================
"""
