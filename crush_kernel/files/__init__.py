"""Files as such: their bytes as text, their names for people, and how to open them safely.

May import nothing of this project.
"""
