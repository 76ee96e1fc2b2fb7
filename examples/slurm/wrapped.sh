#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=2 --mem=400
# The script is a job of perfagent's, and so is each rank of its step: two launches of one run, side by side.
[ -n "$WRAPPED" ] || WRAPPED=yes exec perfagent run -- sh "$0"
srun perfagent run -- python3 rank.py
