"""Model providers behind one port, and what is known about their models.

May import `config` and lower. Vendor types never leave the module of their vendor.
"""
