"""A rank that works for half a minute. Rank 3 takes 20 MB more of memory every 50 ms."""
import os
import time

kept = []
end = time.monotonic() + 30
while time.monotonic() < end:
    if os.environ["SLURM_PROCID"] == "3":
        kept.append(b"x" * 20_000_000)
    time.sleep(0.05)
