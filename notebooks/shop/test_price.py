"""What `price` promises."""

import unittest

from price import price


class PriceTest(unittest.TestCase):
    """A price is an amount that can be paid: whole cents."""

    def test_without_a_discount_the_amount_is_paid(self) -> None:
        self.assertEqual(price(19.99), 19.99)

    def test_a_discounted_price_is_in_whole_cents(self) -> None:
        self.assertEqual(price(19.99, discount=0.15), 16.99)


if __name__ == "__main__":
    unittest.main()
