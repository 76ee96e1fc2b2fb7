"""Runs the command in its arguments until standard input ends, then kills it and all that it started. When the command
ends first, its children are killed, and its exit status is ours.

The test binary holds the other end of standard input, so nothing outlives it, however it ends. When this ends, all the
others have, and nobody writes into the server's directory any more.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import threading

# Of each process: far more than a server needs, far less than the machine has.
MEMORY = 6 << 30
PR_SET_CHILD_SUBREAPER = 36  # Linux: orphans become our children, so that we can wait for them

stopping = threading.Event()


def end(code):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    os._exit(code)


def watch():
    code = child.wait()
    if not stopping.is_set():
        end(code % 256)


resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
with contextlib.suppress(OSError, AttributeError):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
threading.Thread(target=watch, daemon=True).start()
while os.read(0, 4096):
    pass
stopping.set()
end(0)
