"""Controlled rounding by several algorithms; ``method.ControlledRounding`` chooses one.

- ``two_way``: the nearest rounding of tables that are networks, by network flow
- ``unbiased``: one that is right on average, for the same tables
- ``linked``: the nearest rounding of any system of tables, by an integer program
- ``local``: a rounding of large systems, by search
- ``linked_bounds``: what a reader of either knows
"""
