"""Finding files and lines: what `glob`, `grep` and `ls` share.

May import what `tools` may, and the lower modules of `tools`; no tool.
"""
