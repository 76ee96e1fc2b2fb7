#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=1 --mem=400
# Two nodes: Slurm starts one torchrun on each, torchrun the workers.
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes=2 --nproc-per-node=2 --rdzv-id="$SLURM_JOB_ID" --rdzv-backend=c10d --rdzv-endpoint="$head:29500" \
	--no-python perfagent run -- python3 train.py
