"""A yearly programme: a set of prepared tables made from records, protected together, in one run.

====================  =========================================================================
:mod:`.spec`          what a programme file says, checked
:mod:`.read`          from TOML to a programme; every mistake is one sentence
:mod:`.hierarchies`   groups of codes from files, such as trees of tau-ARGUS
:mod:`.source`        the records, or the bundle, that the tables are counted from
:mod:`.system`        linked tables of several responses as one system of cells
:mod:`.judge`         which cells of the system are sensitive, shown or not
:mod:`.protect`       suppression, controlled rounding and adjustment of a system
:mod:`.audit`         what a reader of all tables together can work out
:mod:`.trace`         what only the agency may know of a run
:mod:`.run`           one run, from the file to the public folder
====================  =========================================================================
"""
