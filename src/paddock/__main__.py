"""`python -m paddock`: the program."""

import sys

from paddock.app.main import main

sys.exit(main())
