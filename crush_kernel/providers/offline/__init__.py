"""The offline provider: an honest stand-in for a model that needs no key and no network.

`model` is the adapter. It plays a `script` where one is written for the prompt; else
`requests` finds in the `words` of the prompt what is asked for, an intent, and `answers`
does it with the real tools, reading from the `turn` what came of it so far.
"""
