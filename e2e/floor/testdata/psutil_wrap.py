"""Runs a command while a thread samples the host as perf.py does: psutil_wrap.py SECONDS COMMAND..."""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
from perfpy_way import Sampler  # noqa: E402

interval = float(sys.argv[1])
sampler = Sampler(interval, interval)
sampler.daemon = True
sampler.start()
sys.exit(subprocess.call(sys.argv[2:]))
