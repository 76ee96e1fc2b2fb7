#!/bin/sh
# Each worker is below a perfagent of its own: the report has every rank.
torchrun --standalone --nproc-per-node=2 --no-python perfagent run -- python3 train.py
