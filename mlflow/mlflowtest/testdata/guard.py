"""Runs the command in its arguments until standard input ends, then kills it and all that it started.

The test binary holds the other end of standard input, so nothing outlives it, however it ends.
"""

import os
import resource
import signal
import subprocess
import sys
import threading

# Of each process: far more than a server needs, far less than the machine has.
MEMORY = 6 << 30


def watch():
    while os.read(0, 4096):
        pass
    os.killpg(0, signal.SIGKILL)


os.setsid()
resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
threading.Thread(target=watch, daemon=True).start()
subprocess.call(sys.argv[1:], stdin=subprocess.DEVNULL)
os.killpg(0, signal.SIGKILL)  # it may have left children
