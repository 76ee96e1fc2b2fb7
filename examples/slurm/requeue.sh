#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=1 --mem=300 --requeue --open-mode=append
# A job that Slurm starts again keeps its run: the second start is a launch of its own.
if [ -z "$SLURM_RESTART_COUNT" ]; then
	srun perfagent run -- sh -c 'echo started; sleep 60'
fi
srun perfagent run -- python3 rank.py 0.2
