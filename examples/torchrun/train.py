"""A worker of torchrun that computes for half a second of CPU time. With FAIL=R, rank R exits with 3."""
import os
import sys
import time

rank = os.environ["RANK"]
while time.process_time() < 0.5:
    sum(range(10_000))
if os.environ.get("FAIL") == rank:
    sys.exit(3)
print(f"rank {rank} on {os.uname().nodename} took {time.process_time():.2f} s", flush=True)
