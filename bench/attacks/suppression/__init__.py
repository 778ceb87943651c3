"""Attacks on suppressed tables, written apart from the code that protects.

The product is driven from outside, by its command line and its front door for frames. What it wrote is read
back from the files and attacked with linear and integer programs of this package. Nothing here imports
``lustrum.protect``, ``lustrum.audit`` or what they stand on: a shared mistake would hide itself.

=============  ==============================================================================
``cells``      variables, codes and records: which sums of the unseen table a cell shows
``rules``      which cells are sensitive, and the protection that the literature demands
``problems``   random problems, kind by kind
``files``      what a written file says, in every format
``drive``      runs of the product
``programs``   ranges of cells by linear and integer programs
``attackers``  what a reader, an insider and two insiders know
``judge``      attacks on one run, and what they found
``audits``     files with and without disclosures, for ``lustrum audit``
``planted``    files with known leaks: a suite that misses one proves nothing
``faults``     faults put into the product while it runs, which the suite must report
``intake``     odd files, each taken or refused with a sentence
``log``        results of problems, one line each
=============  ==============================================================================
"""
