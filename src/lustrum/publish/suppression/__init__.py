"""Confidential tables in files, suppressed together, and what may be published of them."""
