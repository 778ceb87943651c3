"""Confidential tables in files, suppressed together, and what may be published of them.

===================  ====================================================================================
:mod:`.inputs`       what is said about tables: rules, cells by their codes, the last period's pattern
:mod:`.tables`       the tables as one problem: patterns, what changed and why, protected tables
:mod:`.files`        the files that are written
:mod:`.long_search`  says that a search goes on, and stops it with the best pattern so far
===================  ====================================================================================
"""
