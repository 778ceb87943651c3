"""Attacks on a table server, as a reader with time would run them: only public answers go in.

The truth is used afterwards, to see whether what an attack calls certain is right.
"""
