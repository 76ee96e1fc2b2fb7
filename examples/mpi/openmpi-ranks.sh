#!/bin/sh
# Four ranks on this machine, each below a perfagent of its own.
mpirun -n 4 perfagent run -- python3 pi.py 2
