"""From records, files or frames to something published: count, judge, protect, audit, write.

===================  ===============================================================================
:mod:`.records`      the records of a data folder, which give protected numbers and nothing else
:mod:`.bundles`      protect a dataset once and write its public bundle
:mod:`.report`       the agency's own report of a protected population
:mod:`.programme`    a yearly programme of tables that are protected together
:mod:`.suppression`  confidential tables in files, suppressed together
:mod:`.prepared`     write the public folder of a programme
:mod:`.folders`      put a finished folder in its place, at no moment without one
:mod:`.frames`       one call from a frame of records to a protected table
:mod:`.waivers`      holdings that allow their values to be shown
:mod:`.doctor`       examine a data folder
===================  ===============================================================================
"""
