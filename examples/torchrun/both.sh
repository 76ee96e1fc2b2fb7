#!/bin/sh
# torchrun as a whole, and each worker: two launches of one run, side by side. The workers are counted in both.
perfagent run -- torchrun --standalone --nproc-per-node=2 --no-python perfagent run -- python3 train.py
