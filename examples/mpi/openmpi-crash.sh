#!/bin/sh
# Rank 3 crashes, which is on the second host.
mpirun --host node1:2,node2:2 -n 4 perfagent run -- python3 pi.py 2 3
