"""A job of about ten seconds that uses what perfagent measures: CPU, memory, disk and loopback network.

Standard library only. Says what it does as it goes, and leaves nothing behind.
"""

import json
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time

MIB = 1 << 20
CPU_SECONDS = 4.5
MEMORY_MIB = 300
MEMORY_SECONDS = 2.0
DISK_MIB = 200
NETWORK_MIB = 200
NETWORK_SECONDS = 2.0


def say(text):
    print("job: " + text, flush=True)


def phase(name):
    """Tell perfagent, if it runs this job, which phase begins: a line of JSON in the file that it names."""
    path = os.environ.get("PERFAGENT_MARKS")
    if path:
        with open(path, "a") as file:
            file.write(json.dumps({"phase": name, "ts": time.time()}) + "\n")


def spin(seconds):
    end = time.monotonic() + seconds
    x = 1
    while time.monotonic() < end:
        for _ in range(10000):
            x = x * 1103515245 + 12345 & 0x7FFFFFFF


def use_cpu():
    phase("compute")
    workers = [
        multiprocessing.Process(target=spin, args=(CPU_SECONDS,), daemon=True)
        for _ in range(os.cpu_count() or 1)
    ]
    say("computing on %d CPUs for %.1f s" % (len(workers), CPU_SECONDS))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def use_memory():
    phase("fill memory")
    say("touching %d MiB of memory, held for %.1f s" % (MEMORY_MIB, MEMORY_SECONDS))
    start = time.monotonic()
    block = bytearray(MEMORY_MIB * MIB)
    # Pages of zeros are free until something is written to them.
    for page in range(0, len(block), 4096):
        block[page] = 1
    time.sleep(max(0, start + MEMORY_SECONDS - time.monotonic()))


def use_disk():
    phase("write and read")
    say("writing %d MiB to a file and reading it back" % DISK_MIB)
    chunk = os.urandom(MIB)
    # Here rather than in /tmp, which is often memory.
    with tempfile.TemporaryFile(dir=".", buffering=0) as file:
        for _ in range(DISK_MIB):
            file.write(chunk)
        os.fsync(file.fileno())
        # Without this the kernel answers from memory and the disk reads nothing.
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        while file.read(MIB):
            pass


def receive_all(server, received):
    connection, _ = server.accept()
    with connection:
        while True:
            data = connection.recv(MIB)
            if not data:
                return
            received[0] += len(data)


def use_network():
    phase("send")
    say("sending %d MiB over loopback TCP in %.1f s" % (NETWORK_MIB, NETWORK_SECONDS))
    chunk = bytes(MIB)
    received = [0]
    with socket.create_server(("127.0.0.1", 0)) as server:
        receiver = threading.Thread(target=receive_all, args=(server, received))
        receiver.start()
        with socket.create_connection(server.getsockname()) as sender:
            start = time.monotonic()
            for sent in range(1, NETWORK_MIB + 1):
                sender.sendall(chunk)
                # Unpaced it would be over between two samples.
                time.sleep(max(0, start + NETWORK_SECONDS * sent / NETWORK_MIB - time.monotonic()))
        receiver.join()
    if received[0] != NETWORK_MIB * MIB:
        sys.exit("job: %d bytes arrived of %d" % (received[0], NETWORK_MIB * MIB))


def main():
    # Ctrl-C ends the job and its workers without a traceback from each.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    start = time.monotonic()
    use_cpu()
    use_memory()
    use_disk()
    use_network()
    say("done in %.1f s" % (time.monotonic() - start))


if __name__ == "__main__":
    main()
