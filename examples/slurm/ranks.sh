#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=4 --mem=400
# Eight ranks on two nodes, each below a perfagent of its own.
srun perfagent run -- python3 rank.py
