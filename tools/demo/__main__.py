"""The demonstration: `python -m tools.demo up` starts a control plane with a machine of each dialect and shows them come up;
`down` takes all of it away. On a terminal everything stays until `down`; elsewhere `up` shows it, and takes it away itself.
"""

import os
import signal
import sys

# Loading takes a moment, in which there is nothing to clean up.
signal.signal(signal.SIGINT, lambda *_: os._exit(130))

from tools.demo.play import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
