"""Tables in files: read from CSV, Parquet, XLSX and JSON-stat by a layout, published or confidential."""
