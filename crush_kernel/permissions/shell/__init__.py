"""What a command line does, read from its text: pure, and never looser than its strictest part.

A guard rail that saves questions and words the ones that are left; no sandbox.
"""
