"""`python -m paddock.app`: the program."""

import sys

from paddock.app.main import main

sys.exit(main())
