"""Computes pi with all ranks for SECONDS: pi.py SECONDS [RANK]. With RANK, that one crashes halfway."""
import os
import signal
import sys
import time

from mpi4py import MPI

ranks = MPI.COMM_WORLD
seconds = float(sys.argv[1])
crashing = int(sys.argv[2]) if len(sys.argv) > 2 else -1

steps, begin = 100_000, time.monotonic()
while True:
    part = sum(4 / (1 + ((i + 0.5) / steps) ** 2) for i in range(ranks.rank, steps, ranks.size)) / steps
    pi = ranks.allreduce(part)
    elapsed = ranks.bcast(time.monotonic() - begin)
    if ranks.rank == crashing and elapsed > seconds / 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    if elapsed > seconds:
        break
if ranks.rank == 0:
    print(f"pi is {pi:.6f}, by {ranks.size} ranks", flush=True)
