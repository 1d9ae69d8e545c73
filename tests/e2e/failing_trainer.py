"""A trainer that ends at once, saying what ``--save_weight`` names as real trainers do."""

import json
import os
import sys
from pathlib import Path

TRACEBACK = 'Traceback (most recent call last):\n  File "/x/trainers/sft.py", line 9, in train\n    save()\n'
SAYS = {
    "full_disk": f"{TRACEBACK}OSError: [Errno 28] No space left on device: 'checkpoint.pt'",
    "gpu_memory": f"{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "package": f"{TRACEBACK}ModuleNotFoundError: No module named 'flash_attn'\n\n 50%|█████     | 5/10 [00:01<00:01]",
}


def main() -> int:
    flags = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
    fault, folder = flags["--save_weight"], Path(os.environ["NIGHTSHIFT_HOME"]) / flags["--run_dir"]
    print("$", *sys.argv, flush=True)
    if fault == "full_disk_once" and flags["--from_resume"] == "1":
        (folder / "model").mkdir(exist_ok=True)
        (folder / "result.json").write_text(json.dumps({"exit_code": 0, "steps": 1, "error": None}))
        return 0
    print(SAYS[fault.removesuffix("_once")], file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
