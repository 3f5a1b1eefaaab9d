"""python -m veilgraph.cli"""

import sys

from veilgraph.cli import main

if __name__ == "__main__":
    sys.exit(main())
