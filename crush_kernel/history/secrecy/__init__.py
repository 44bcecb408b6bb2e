"""What is a secret in a text, and where: formats, places, variables and patterns.

Pure, all of it; imports nothing of ours but itself. `history.redaction` is the way in.
"""
