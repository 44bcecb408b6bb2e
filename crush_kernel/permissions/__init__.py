"""Who may do what: pure rules, and the gate that asks when the rules do not decide.

May import `config` and lower.
"""
