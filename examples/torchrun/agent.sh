#!/bin/sh
# torchrun as a whole is one job: one perfagent a node, and no ranks.
perfagent run -- torchrun --standalone --nproc-per-node=2 train.py
