"""``python -m fusee`` is the command line ``fusee``."""

from __future__ import annotations

from fusee_launcher import main

if __name__ == "__main__":
    main()
