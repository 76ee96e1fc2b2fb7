#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=4 --mem=400
# Eight ranks on two nodes. Rank 3 takes more memory than the job may have on a node, and the kernel kills it. With
# --kill-on-bad-exit Slurm ends the others.
srun --kill-on-bad-exit perfagent run -- python3 hungry.py
code=$?
perfagent ls
perfagent show "$SLURM_JOB_ID"
exit $code
