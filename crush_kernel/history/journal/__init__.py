"""The journal: a turn on disk while it runs and when it is over, and the way back after a kill.

May import what `history` may, and its values; no session and no conversation.
"""
