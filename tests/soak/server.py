"""The server process: one data directory and one port over all its starts."""

import json
import os
import signal
import subprocess
import tempfile

# Small, so that partitions split all the time.
FLAGS = ["--partition-max-bytes", "100KB", "--partition-max-ru", "1000", "--partition-initial-ru", "1000"]
STOP_TIMEOUT_S = 20


class Server:
    def __init__(self, binary, log):
        self.binary, self.log, self.port, self.process = binary, open(log, "ab"), 0, None
        self.directory = tempfile.TemporaryDirectory(prefix="pleiad-soak-")

    def start(self):
        """Returns when the server accepts requests."""
        command = [self.binary, "dev", "--quiet", "--log-level", "info", "--data", self.directory.name, *FLAGS]
        command += ["--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log)
        ready = self.process.stdout.readline()
        if not ready:
            raise RuntimeError(f"the server did not start; see {self.log.name}")
        self.port = json.loads(ready)["port"]  # the next start uses the same port

    @property
    def endpoint(self):
        return f"http://localhost:{self.port}"

    @property
    def is_alive(self):
        return self.process.poll() is None

    def kill(self):
        """Like a crash: no shutdown, nothing is flushed."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait(STOP_TIMEOUT_S)

    def inspect(self):
        """Checks the consistency of the data on disk. No process may have it open."""
        result = subprocess.run([self.binary, "inspect", "--data", self.directory.name], capture_output=True, text=True)
        return [] if result.returncode == 0 else [f"inspect: {(result.stdout + result.stderr)[-2000:]}"]
