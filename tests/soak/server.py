"""The binary, on one data directory and one port, as often as it is started."""

import json
import os
import signal
import subprocess
import tempfile

# Small, so that partitions split all the time.
FLAGS = ["--partition-max-bytes", "100KB", "--partition-max-ru", "1000", "--partition-initial-ru", "1000"]
STOP_WITHIN_S = 20


class Server:
    def __init__(self, binary, log):
        self.binary, self.log, self.port, self.process = binary, open(log, "ab"), 0, None
        self.directory = tempfile.TemporaryDirectory(prefix="pleiad-soak-")

    def start(self):
        """Returns when it answers."""
        line = [self.binary, "dev", "--quiet", "--log-level", "info", "--data", self.directory.name, *FLAGS]
        line += ["--port", str(self.port)]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=self.log)
        ready = self.process.stdout.readline()
        if not ready:
            raise RuntimeError(f"the server did not start; see {self.log.name}")
        self.port = json.loads(ready)["port"]  # the next start takes the same one

    @property
    def endpoint(self):
        return f"http://localhost:{self.port}"

    @property
    def is_alive(self):
        return self.process.poll() is None

    def kill(self):
        """As a crash does it: no goodbye, nothing flushed."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait(STOP_WITHIN_S)

    def inspect(self):
        """Does what is on disk fit together? Nobody else may have it open."""
        told = subprocess.run([self.binary, "inspect", "--data", self.directory.name], capture_output=True, text=True)
        return [] if told.returncode == 0 else [f"inspect: {(told.stdout + told.stderr)[-2000:]}"]
