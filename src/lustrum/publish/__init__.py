"""From records to something published: count, judge, protect, audit, write.

=================  =================================================================================
:mod:`.records`    the records of a data folder, which give protected numbers and nothing else
:mod:`.bundles`    protect a dataset once and write its public bundle
:mod:`.report`     the agency's own report of a protected population
:mod:`.programme`  a yearly programme of tables that are protected together
:mod:`.doctor`     examine a data folder
=================  =================================================================================
"""
