"""A trainer that learns nothing: it keeps the run folder's contract, takes a tenth of a second per step, and obeys
``--save_weight`` as the name of a fault. Each step, START and END go to a ledger that the tests read."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

STEP = 0.1  # seconds
STOPPED = 3


def main():
    flags = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
    job, fault, total = flags["--run_dir"].removeprefix("runs/"), flags["--save_weight"], int(flags["--max_steps"])
    print("$", *sys.argv, flush=True)
    home = Path(os.environ["NIGHTSHIFT_HOME"])
    run = Run(home / flags["--run_dir"], home / "ledger.txt", job)
    run.train(fault, total, resume=flags["--from_resume"] == "1")


class Run:
    def __init__(self, folder, ledger, job):
        self.folder, self.ledger, self.job, self.stopping = folder, ledger, job, False

    def train(self, fault, total, *, resume):
        signal.signal(signal.SIGTERM, self.stop)
        self.note("START")
        step = self.checkpoint_step() if resume else 0
        rows = [row for row in self.rows() if row["step"] <= step] if step else []
        (self.folder / "metrics.tmp").write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.replace(self.folder / "metrics.tmp", self.folder / "metrics.jsonl")
        if "grandchild" in fault:
            subprocess.Popen(["sleep", "60"], start_new_session=True)
        for number in range(step + 1, total + 1):
            self.step(number, total, fault)
        if fault == "exit1":
            self.result(1, number, "ValueError: the loss is made of cheese")
        (self.folder / "model").mkdir(exist_ok=True)
        (self.folder / "model" / "config.json").write_text("{}")
        (self.folder / "model" / "weights.txt").write_text(f"weights of {self.job}")
        self.note("END")
        self.result(0, total)

    def step(self, number, total, fault):
        time.sleep(STEP)
        print(f"step {number}/{total} loss {1 / number:.4f}", flush=True)
        if fault == "chatty":  # and it keeps its own hands off the disk until its end
            print(os.urandom(4_000).hex(), flush=True)
            self.note(f"STEP {number}")
            return
        values = {"loss": 1 / number}
        self.append("metrics.jsonl", {"step": number, "total_steps": total, "time": time.time(), "values": values})
        completion = {"text": f"{number}", "rewards": {"answer": 1.0}, "reward": 1.0, "advantage": 0.0}
        self.append("samples.jsonl", {"step": number, "kind": "train", "prompt": "2+2", "answer": "4",
                                      "completions": [completion]})  # fmt: skip
        self.note(f"STEP {number}")
        if fault == "segv" and number == 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        if fault == "sigkill" and number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "saver" and number % 10 == 0:
            self.checkpoint(number)
        if self.stopping and "ignore_sigterm" not in fault:
            self.checkpoint(number)
            self.result(STOPPED, number, "stopped on request")

    def stop(self, *_):
        self.stopping = True

    def checkpoint(self, step):
        (self.folder / "checkpoint").mkdir(exist_ok=True)
        (self.folder / "checkpoint.tmp").write_text(json.dumps({"step": step}))
        os.replace(self.folder / "checkpoint.tmp", self.folder / "checkpoint" / "meta.json")

    def checkpoint_step(self):
        path = self.folder / "checkpoint" / "meta.json"
        return json.loads(path.read_text())["step"] if path.exists() else 0

    def rows(self):
        path = self.folder / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def result(self, code, steps, error=None):
        (self.folder / "result.tmp").write_text(json.dumps({"exit_code": code, "steps": steps, "error": error}))
        os.replace(self.folder / "result.tmp", self.folder / "result.json")
        sys.exit(code)

    def append(self, name, row):
        with (self.folder / name).open("a") as file:
            file.write(json.dumps(row) + "\n")

    def note(self, what):
        with self.ledger.open("a") as file:
            devices = os.environ.get("CUDA_VISIBLE_DEVICES") or "cpu"
            file.write(f"{self.job} {what} {devices} {os.getpid()} {time.time():.3f}\n")


if __name__ == "__main__":
    main()
