"""Texts of files: found in, replaced, compared and cut, knowing nothing of where they are kept.

May import nothing of the rest of the program.
"""
