#!/usr/bin/env python3
"""Runs a command and prints, last, the most memory that it had resident, in bytes."""

import resource
import subprocess
import sys

code = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(code if code >= 0 else 128 - code)  # as a shell says that a signal ended it
