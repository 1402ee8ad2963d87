"""`python -m seatrial`: the same as the command."""

import sys

from seatrial.cli import main

sys.exit(main())
