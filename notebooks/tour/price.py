"""Prices in a small shop."""

TAX_RATE = 0.20


def with_tax(net: float) -> float:
    """Return what a customer pays for goods of the price `net`, rounded to cents."""
    return round(net * (1 + TAX_RATE), 2)
