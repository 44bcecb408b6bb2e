"""Lets `python -m crush_kernel` be the command line."""

import sys

from crush_kernel.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
