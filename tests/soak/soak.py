"""Partitions split and merge continuously while SDKs read and write, and clients see no error and no wrong result.

    python soak.py splits           by storage and by throughput: no error that an SDK's own retries do not hide
    python soak.py merges           in addition, neighbouring partitions are merged again
    python soak.py splits killed    the server is killed (SIGKILL) now and then, in any phase of its jobs, and started again
    python soak.py merges killed

`cargo xtask test soak` prepares the SDKs, runs all four and passes PLEIAD_BINARY, SOAK_NODE_MODULES and SOAK_LOGS.
SOAK_SECONDS limits the time of each run; SOAK_SEED repeats the same actions, though not their timing.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from management import Management
from server import Server

KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
HERE = Path(__file__).parent
WORLDS = [["splits"], ["merges"], ["splits", "killed"], ["merges", "killed"]]
# A run with fewer splits or merges is a failure; a slow machine gets some extra time for them.
SPLITS_MIN, MERGES_MIN, EXTRA_S = 20, 5, 60
PARTITIONS_MAX = {"splits": 60, "merges": 20}
JOBS_TIMEOUT_S, REPORT_TIMEOUT_S = 60, 120
PARTITION_RU = 1000  # see server.FLAGS


class Soak:
    def __init__(self, world, seed, logs):
        self.is_merged, self.is_killed = "merges" in world, "killed" in world
        self.rng, self.partitions_max = random.Random(seed), PARTITIONS_MAX[world[0]]
        self.server = Server(os.environ["PLEIAD_BINARY"], logs / "server.log")
        self.management = Management(self.server, KEY)
        self.merges, self.raises, self.kills, self.fence_ms, self.failed = 0, 0, 0, 0, set()

    def run(self, seconds):
        """Returns the differences that were found and prints the figures."""
        self.server.start()
        self.management.create()
        workers = [self.worker([sys.executable, HERE / "worker.py"]), self.worker(["node", HERE / "worker.js"])]
        try:
            return self.supervise(workers, time.monotonic() + seconds)
        finally:
            for process in [*workers, self.server.process]:
                process.kill()

    def supervise(self, workers, until):
        while self.has_more_to_do(until) and all(worker.poll() is None for worker in workers):
            self.disturb()
        differences = self.wait_for_jobs()
        for worker in workers:
            worker.stdin.close()
        reports = [self.report(worker) for worker in workers]
        ended = [] if self.server.is_alive else ["the server has ended"]
        splits = self.count_splits()
        self.server.stop()
        self.print_summary(splits, reports)
        found = [f"{report['sdk']}: {text}" for report in reports for text in report["differences"]]
        return differences + found + ended + self.too_few(splits) + self.server.inspect()

    def has_more_to_do(self, until):
        now = time.monotonic()
        return now < until or (now < until + EXTRA_S and bool(self.too_few(self.count_splits())))

    def worker(self, command):
        environment = {"PLEIAD_ENDPOINT": self.server.endpoint, "PLEIAD_KEY": KEY, "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= {"NODE_PATH": os.environ.get("SOAK_NODE_MODULES", ""), "SOAK_KILLED": str(int(self.is_killed))}
        environment |= {"SOAK_MERGED": str(int(self.is_merged))}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env={**os.environ, **environment}, **pipes)

    def report(self, worker):
        """The report that a worker prints at its end."""
        timeout = threading.Timer(REPORT_TIMEOUT_S, worker.kill)
        timeout.start()
        output = worker.stdout.read()
        timeout.cancel()
        no_report = {"sdk": Path(worker.args[-1]).name, "differences": ["ended without a report"], "counts": {}, "longest_ms": {}}
        return json.loads(output) if output else no_report

    def disturb(self):
        """Full partitions split by themselves; this requests everything else."""
        time.sleep(self.rng.uniform(0.2, 0.6))
        self.check_jobs()
        if self.is_killed and self.rng.random() < 0.35:
            self.server.kill()
            self.kills += 1
            self.server.start()
        partitions = self.management.partitions()
        if len(partitions) < self.partitions_max and self.rng.random() < 0.25:
            self.raises += 1
            self.management.reserve((len(partitions) + 3) * PARTITION_RU)
        else:
            self.management.reserve(PARTITION_RU)  # the lowest possible: no split for throughput
            self.merge_some(partitions)

    def merge_some(self, partitions):
        if self.is_merged and len(partitions) > 2:
            first = self.rng.randrange(len(partitions) - 1)
            ids = [partition["id"] for partition in partitions[first : first + self.rng.choice([2, 2, 3])]]
            self.merges += self.management.merge(ids) is not None

    def check_jobs(self):
        for job in self.management.jobs():
            self.fence_ms = max(self.fence_ms, job.get("fenceMs") or 0)
            if job["status"] == "failed":
                self.failed.add(f"{job['kind']} {job['id']} failed: {job.get('error')}")

    def wait_for_jobs(self):
        """Waits until all jobs have finished; returns the failed ones."""
        until = time.monotonic() + JOBS_TIMEOUT_S
        while any(job["status"] == "running" for job in self.management.jobs()):
            if time.monotonic() > until:
                return [f"still running after {JOBS_TIMEOUT_S} s: {self.management.jobs()}"]
            time.sleep(0.1)
        self.check_jobs()
        return sorted(self.failed)

    def count_splits(self):
        """IDs are never reused: one for the first partition, two for each split, one for each merge."""
        ids = [int(partition["id"]) for partition in self.management.partitions()]
        return (max(ids) - self.merges) // 2

    def too_few(self, splits):
        counts = [("splits", splits, SPLITS_MIN), ("merges", self.merges, MERGES_MIN if self.is_merged else 0)]
        return [f"only {count} {what}, at least {minimum} are required" for what, count, minimum in counts if count < minimum]

    def print_summary(self, splits, reports):
        print(f"{splits} splits, {self.merges} merges, throughput raised {self.raises} times, {self.kills} kills")
        print(f"longest fence: {self.fence_ms} ms")
        for report in reports:
            counts, longest = report["counts"], report["longest_ms"]
            repeats = f", {counts['repeats']} changes repeated" if "repeats" in counts else ""
            requests = ", ".join(f"{counts[what]} × {what}, up to {longest[what]} ms" for what in longest)
            print(f"{report['sdk']}: {report.get('items')} items; {requests}{repeats}")


def main():
    world = sys.argv[1:] if sys.argv[1:] in WORLDS else sys.exit(__doc__)
    seed = os.environ.get("SOAK_SEED") or str(random.randrange(1 << 32))
    logs = Path(os.environ.get("SOAK_LOGS", "."))
    differences = Soak(world, seed, logs).run(float(os.environ.get("SOAK_SECONDS", "22")))
    for difference in differences:
        print(f"DIFFERS: {difference}")
    if differences:
        sys.exit(f"again: SOAK_SEED={seed} cargo xtask test soak   (the server's log: {logs / 'server.log'})")


if __name__ == "__main__":
    main()
