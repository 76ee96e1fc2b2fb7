#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=2 --mem=400
# Two steps one after the other: two launches of one run.
srun perfagent run -- python3 rank.py 0.2
srun --ntasks=2 --ntasks-per-node=1 perfagent run -- python3 rank.py 0.3
