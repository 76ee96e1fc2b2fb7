#!/bin/sh
# One rank of one program and two of another are one launch. Slurm gives each its own node.
srun --nodes=1 --ntasks=1 --mem=300 perfagent run -- python3 rank.py 0.2 : \
	--nodes=1 --ntasks=2 --mem=300 perfagent run -- python3 rank.py 0.4
