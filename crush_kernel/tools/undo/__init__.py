"""What turns have done to files: seen by a private git repository, and taken back.

May import what `tools` may; no tool.
"""
