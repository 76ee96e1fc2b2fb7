#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=2 --mem=400
# mpirun starts the ranks. With more than one network between the nodes, name the one to use: $MPI_FLAGS.
# shellcheck disable=SC2086 # several words
mpirun $MPI_FLAGS perfagent run -- python3 rank.py
