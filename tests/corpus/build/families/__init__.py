"""after SDMX, Eurostat, national offices, code lists, companion columns, crosstabs, linked files"""

from corpus.build.families import america, codes, continent, europe, islands, sdmx

__all__ = ["america", "codes", "continent", "europe", "islands", "sdmx"]
