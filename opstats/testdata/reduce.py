"""Reduces transfers with numpy's own mean, percentile and round, as vLLM's statistics of transfers are reduced.

Reads a list of {list name: numbers} and writes a list of eight figures each; one that is not finite as text.
"""

import json
import math
import sys

import numpy as np


def reduce(data):
    xfer = np.asarray(data["transfer_duration"])
    if len(xfer) == 0:
        return [0] * 8
    post = np.asarray(data["post_duration"])
    mb = np.asarray(data["bytes_transferred"]) / 2**20
    descriptors = np.asarray(data["num_descriptors"], dtype=np.uint32)
    return [
        len(xfer),
        round(xfer.mean() * 1e3, 3),
        round(np.percentile(xfer, 90).item() * 1e3, 3),  # a float of Python, which rounds otherwise
        round(post.mean() * 1e3, 3),
        round(np.percentile(post, 90).item() * 1e3, 3),
        round(mb.mean(), 3),
        round(mb.sum() / xfer.sum(), 3),
        round(descriptors.mean(), 1),
    ]


def plain(v):
    return float(v) if math.isfinite(v) else str(float(v))


np.seterr(all="ignore")
with open(sys.argv[1]) as file:
    vectors = json.load(file)
json.dump([[plain(v) for v in reduce(data)] for data in vectors], sys.stdout)
