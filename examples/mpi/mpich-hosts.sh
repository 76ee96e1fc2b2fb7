#!/bin/sh
# Two hosts with two ranks each. They share the directory, as those of a cluster do.
mpiexec -hosts node1:2,node2:2 -n 4 perfagent run -- python3 pi.py 2
