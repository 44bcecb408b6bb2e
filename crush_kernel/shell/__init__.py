"""The one way to run a command line: its environment, its output, its processes and their end.

May import `messages` and `errors`.
"""
