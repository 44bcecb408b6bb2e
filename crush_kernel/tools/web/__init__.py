"""The web as the network tools use it: addresses, one careful client, pages, searches.

May import `permissions`, `providers.tls`, `config` and `tools.base`; knows nothing of single
tools.
"""
