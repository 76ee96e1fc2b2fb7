"""A rank that computes for SECONDS of CPU time, which is half a second, and says how much it took."""
import os
import sys
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
while time.process_time() < seconds:
    sum(range(10_000))
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["SLURM_PROCID"]
print(f"rank {rank} on {os.uname().nodename} took {time.process_time():.2f} s", flush=True)
