"""One rank ends in the way that is asked for, after all have met: fail.py RANK HOW. The others wait for it.

HOW is a signal (SIGSEGV), an exit code (7), "abort" (MPI_Abort with code 5), or "finalize" (a normal end).
"""
import os
import signal
import sys
import time

from mpi4py import MPI

ranks, rank, how = MPI.COMM_WORLD, int(sys.argv[1]), sys.argv[2]
ranks.Barrier()
print(f"rank {ranks.rank} has met the others at {time.time():.3f}", flush=True)
if ranks.rank != rank:
    if how != "finalize":
        ranks.Barrier()
elif how == "abort":
    ranks.Abort(5)
elif how.isdigit():
    os._exit(int(how))
elif how != "finalize":
    os.kill(os.getpid(), getattr(signal, how))
