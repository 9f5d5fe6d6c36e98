"""`python -m runyard`."""

from __future__ import annotations

from runyard.cli.main import main

if __name__ == "__main__":
    main()
