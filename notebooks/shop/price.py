"""What a customer of the shop pays."""


def price(amount: float, discount: float = 0.0) -> float:
    """Return `amount` less `discount`, rounded to cents; a discount of 0.15 is 15 percent."""
    return round(amount, 2) * (1 - discount)
