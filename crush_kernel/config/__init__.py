"""What the user asked for: environment, directories and remembered choices, validated.

May import `shell` and lower.
"""
