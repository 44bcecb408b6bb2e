"""The `/commands`: their table, and a module for each group of them.

May import what `kernel` may.
"""
