import sys

from bayesid.cli.main import main

sys.exit(main())
