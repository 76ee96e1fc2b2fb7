"""Measure a part of a Python program: what it and its children use, and what the machine does meanwhile.

    import perfagent

    with perfagent.Monitor("training") as monitor:
        with perfagent.phase("load"):
            data = load()
        train(data)

    print(monitor.summary)

The measuring is done by the program perfagent in a process of its own, which is attached to this one. Nothing is sampled
here: there is no thread, and nothing waits for the interpreter's lock.
"""

from __future__ import annotations

import atexit
import contextlib
import html
import json
import os
import select
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from typing import Any, Mapping, Sequence

__all__ = ["Monitor", "mark", "phase"]
__version__ = "1.0.0"

_MARKS = "PERFAGENT_MARKS"
_PHASE = b"PERFAGENT_PHASE"

_START_PATIENCE = 30  # seconds until the program must have begun to record
_STOP_PATIENCE = 60  # seconds until it must have ended; a push to MLflow may take some
_LINE = 64 * 1024  # bytes that its first line may have
_TEXT = 200  # characters of a text on the page

_recording: list[Monitor] = []  # those that have set the variable of marks


class Monitor:
    """Records this process, or the one that pid names, with its children, from start() to finalize().

    It is a context manager, too. A failure to start is a RuntimeWarning; report and summary are then None. In a forked
    child it does nothing. At the end of the interpreter it is finalized by itself.

    run_id names the run, and out the directory of the runs; interval is in seconds, or a text such as "100ms"; tags go
    into the report; args are more flags of "perfagent attach".
    """

    def __init__(
        self,
        run_id: str | None = None,
        *,
        out: str | os.PathLike[str] | None = None,
        interval: float | str | None = None,
        tags: Mapping[str, object] | None = None,
        pid: int | None = None,
        args: Sequence[str] = (),
    ) -> None:
        self.run_id = run_id
        self._flags = lambda: _flags(run_id, out, interval, tags, args)
        self._pid = pid
        self._owner: int | None = None  # the process that called start
        self._agent: subprocess.Popen[bytes] | None = None  # while it records
        self._words: Any = None  # the file of what it says
        self._ready: dict[str, Any] | None = None
        self._marks_before: str | None = None
        self._ended = False
        self._report: dict[str, Any] | None = None
        self._summary: dict[str, Any] | None = None

    def start(self) -> Monitor:
        """Begin to record. It returns when the first reading has been taken. A Monitor records once."""
        if self._ended and self._owner == os.getpid():
            text = "perfagent does not record: this Monitor has ended, and records once: make a new one"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        if self._owner is not None:
            return self
        self._owner = os.getpid()

        try:
            self._launch()
        except Exception as err:  # whatever it is, it is not the caller's trouble
            self._give_up()
            warnings.warn(f"perfagent does not record: {err}", RuntimeWarning, stacklevel=2)
        return self

    def finalize(self) -> Monitor:
        """End the recording, and wait for its report. Further calls do nothing."""
        if self._agent is None or self._owner != os.getpid():
            return self
        agent, self._agent = self._agent, None
        atexit.unregister(self.finalize)
        self._restore_marks()

        agent.terminate()
        try:
            agent.wait(_STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            warnings.warn("perfagent is still at work on its report or its push", RuntimeWarning, stacklevel=2)
        self._ended = True
        said = self._pass_on()
        if agent.returncode and not said and self.report_path is None:
            warnings.warn(
                f"perfagent ended by itself (exit code {agent.returncode}); perfagent show {self._ready['dir']} has what is known",
                RuntimeWarning, stacklevel=2,
            )
        return self

    stop = finalize

    def __enter__(self) -> Monitor:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.finalize()

    @property
    def report_path(self) -> str | None:
        """The file of the report, or None if there is none yet."""
        return self._file(".json")

    @property
    def page_path(self) -> str | None:
        """The page beside the report, or None if there is none."""
        return self._file(".html")

    @property
    def report(self) -> dict[str, Any] | None:
        """The report, or None before finalize() and if there is none."""
        path = self.report_path
        if self._report is None and path is not None:
            with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
                self._report = json.load(file)
        return self._report

    @property
    def summary(self) -> dict[str, Any] | None:
        """The run in a few numbers (perfagent.summary/1), or None before finalize() and if there is none."""
        if self._summary is None and self._ended and self._ready is not None:
            with contextlib.suppress(Exception):
                self._summary = self._ask_summary()
        return self._summary

    def __repr__(self) -> str:
        state = "ended" if self._ended else "recording" if self._agent is not None else "not recording"
        return f"<perfagent.Monitor {self.run_id}: {state}>"

    def _repr_html_(self) -> str:
        return _page(self)

    def _launch(self) -> None:
        """Start the program, and wait until it records."""
        self._words = tempfile.TemporaryFile()
        pid = os.getpid() if self._pid is None else self._pid
        self._agent = subprocess.Popen(
            [_binary(), "attach", "--ready", "--summary", "never", *self._flags(), str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,  # Ctrl-C and the interrupt of a notebook are not for it
        )
        with self._agent.stdout as out:
            line = _line(out)
        if not line:
            self._agent.wait(_START_PATIENCE)
            raise RuntimeError(self._said() or f"it ended with exit code {self._agent.returncode}")

        self._ready = _answer(line)
        self.run_id = self._ready["run_id"]
        self._set_marks()
        atexit.register(self.finalize)

    def _give_up(self) -> None:
        """Leave nothing behind of a start that failed."""
        if self._agent is not None and self._agent.poll() is None:
            self._agent.kill()
            self._agent.wait()
        self._agent = self._ready = None
        if self._words is not None:
            self._words.close()

    def _set_marks(self) -> None:
        """Name the file of marks to this process and its children."""
        self._marks_before = os.environ.get(_MARKS)
        if self._ready["marks"]:
            os.environ[_MARKS] = self._ready["marks"]
            _recording.append(self)

    def _restore_marks(self) -> None:
        """Put back the variable that start() set, unless somebody else has set it since."""
        if self not in _recording:
            return
        _recording.remove(self)
        marks = self._ready["marks"]
        for other in _recording:  # one that began later and goes on
            if other._marks_before == marks:
                other._marks_before = self._marks_before

        if os.environ.get(_MARKS) != marks:
            return
        if self._marks_before is None:
            del os.environ[_MARKS]
        else:
            os.environ[_MARKS] = self._marks_before

    def _said(self) -> str:
        """What the program has printed."""
        self._words.seek(0)
        return self._words.read().decode("utf-8", "replace").strip()

    def _pass_on(self) -> str:
        """Print what the program has printed, and return it."""
        said = ""
        with contextlib.suppress(Exception), self._words:
            if said := self._said():
                print(said, file=sys.stderr)
        return said

    def _file(self, suffix: str) -> str | None:
        if self._ready is None or not self._ended:
            return None
        marks, folder = self._ready["marks"], self._ready["dir"]
        if marks:  # it lies beside the report, with its name
            path = marks[: -len(".marks")] + suffix
            return path if os.path.exists(path) else None
        with contextlib.suppress(OSError):  # the report went into a folder of its own
            return next((e.path for e in os.scandir(folder) if e.name.endswith(suffix)), None)
        return None

    def _ask_summary(self) -> dict[str, Any] | None:
        folder = self._ready["dir"]  # its name is not the run's if the report went elsewhere
        done = subprocess.run(
            [_binary(), "ls", "--json", folder],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_STOP_PATIENCE, check=True,
        )
        run = next(iter(json.loads(done.stdout)), None)
        if run is None or self.report_path not in (None, run.get("report")):  # that of a later run of this name
            return None
        return {**run, "run_id": self.run_id}


def mark(text: object) -> None:
    """Mark this moment in the report of the perfagent around this program. Without one, do nothing."""
    _append({"mark": str(text)[:_TEXT], "ts": time.time()})


class phase(contextlib.ContextDecorator):
    """A phase in the report of the perfagent around this program: with phase("load"): … or as a decorator.

    Without a perfagent it does nothing. There is one phase at a time: after an inner one the outer one goes on.
    """

    def __init__(self, name: object) -> None:
        self.name = str(name)[:_TEXT]
        self._before: bytes | None = None
        self._on = False

    def _recreate_cm(self) -> phase:
        return type(self)(self.name)  # each call of a decorated function has its own

    def __enter__(self) -> phase:
        self._on = _MARKS in os.environ
        if self._on:
            self._before = os.environb.get(_PHASE)
            os.environb[_PHASE] = _utf8(self.name)
            _append({"phase": self.name, "ts": time.time()})
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._on:
            return
        if self._before is None:
            os.environb.pop(_PHASE, None)
        else:
            os.environb[_PHASE] = self._before
        outer = (self._before or b"").decode("utf-8", "replace")
        _append({"phase": outer or None, "ts": time.time()})


def _utf8(text: str) -> bytes:
    """A text for the environment: UTF-8, as the program reads it, whatever the locale is."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace")


def _append(record: Mapping[str, object]) -> None:
    """Append a line to the file of marks, if there is one, in one write: lines of several processes do not mix."""
    path = os.environ.get(_MARKS)
    if not path:
        return
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(f"{path} is not a regular file")
            os.write(fd, (json.dumps(record) + "\n").encode())
        finally:
            os.close(fd)
    except OSError as err:
        warnings.warn(f"perfagent: write mark: {err}", RuntimeWarning, stacklevel=3)


def _flags(
    run_id: str | None, out: object, interval: object, tags: Mapping[str, object] | None, args: Sequence[str]
) -> list[str]:
    flags = []
    if run_id is not None:
        flags += ["--run-id", str(run_id)]
    if out is not None:
        flags += ["--out", os.fspath(out)]
    if interval is not None:
        flags += ["--interval", interval if isinstance(interval, str) else f"{interval:f}s"]
    for key, value in (tags or {}).items():
        flags += ["--tag", f"{key}={value}"]
    return [*flags, *args]


def _binary() -> str:
    """The program of this installation, or the one on the PATH."""
    for scheme in (None, f"{os.name}_user"):
        with contextlib.suppress(KeyError):
            folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
            if path := shutil.which("perfagent", path=folder):
                return path
    if path := shutil.which("perfagent"):
        return path
    raise FileNotFoundError("there is no program perfagent beside this Python or on the PATH")


def _line(pipe: Any) -> bytes:
    """The first line of a pipe, or nothing at its end."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    line, end = b"", time.monotonic() + _START_PATIENCE
    while not line.endswith(b"\n") and len(line) < _LINE:
        if not poll.poll(max(0, 1000 * (end - time.monotonic()))):
            raise TimeoutError(f"no response within {_START_PATIENCE} s")
        data = os.read(pipe.fileno(), _LINE)
        if not data:
            return b""
        line += data
    return line


def _answer(line: bytes) -> dict[str, Any]:
    """The program's first line, understood."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        ready = json.loads(line)
        if all(isinstance(ready[key], str) for key in ("run_id", "dir", "marks")):
            return ready
    raise RuntimeError(f"it answered {line[:_TEXT]!r}")


def _page(monitor: Monitor) -> str:
    """The summary of a Monitor as HTML of its own: no script, no address."""
    run = monitor.summary
    if run is None:
        return f"<p>{html.escape(repr(monitor)[:_TEXT])}</p>"

    wall = run.get("wall_seconds")
    head = f"{run['run_id']}: {run.get('verdict') or run['state']}"
    if wall is not None:
        head += f", {wall:.1f} s"
    rows = [_bar(label, run.get(key)) for label, key in _BARS]
    rows += [f"<div>{_text(advice)}</div>" for advice in run.get("advice", [])[:5]]
    if path := run.get("page") or run.get("report"):
        rows.append(f"<div><code>{html.escape(path[:4096])}</code></div>")

    return f'<div style="font-family:sans-serif"><div><b>{_text(head)}</b></div>{"".join(rows)}</div>'


_BARS = (("CPU", "cpu"), ("memory", "memory"), ("GPU", "gpu"), ("GPU memory", "gpu_memory"))


def _bar(label: str, value: Mapping[str, float] | None) -> str:
    if not value or "pct" not in value:
        return ""
    pct = value["pct"]
    words = f"{pct:.0f} %"
    if "of" in value:
        words += f" of {value['of']:g}"
    elif "of_mb" in value:
        words += f" of {value['of_mb'] / 1024:.1f} GiB"
    width = min(max(pct, 0), 100)
    return (
        f'<div><span style="display:inline-block;width:7em">{label}</span>'
        '<span style="display:inline-block;width:10em;height:.8em;background:#8884">'
        f'<span style="display:block;width:{width:.0f}%;height:100%;background:#47a"></span></span> {words}</div>'
    )


def _text(text: object) -> str:
    text = str(text)
    return html.escape(text if len(text) <= 2 * _TEXT else text[: 2 * _TEXT] + "…")
