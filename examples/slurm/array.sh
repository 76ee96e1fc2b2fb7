#!/bin/sh
#SBATCH --array=1-2 --nodes=1 --ntasks=2 --mem=300
# Each task of an array is a run of its own: JOB_1, JOB_2.
srun perfagent run -- python3 rank.py 0.2
