"""The line of a log's end that says why. Each output is one that a real failure leaves."""

import pytest

from jobs.worker.last_line import last_meaningful_line

FRAMES = 'Traceback (most recent call last):\n  File "/x/trainers/sft.py", line 9, in train\n    loss = model(batch)\n'
TABLE = """E1201 03:04:05.678000 4242 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1)
Traceback (most recent call last):
  File "/x/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
trainers FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-12-01_03:04:05
  host      : gpu1
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 4243)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", ""),
        ("$ python -m trainers sft\n", ""),
        ("\n  \n\x1b[31mkilled at last\x1b[0m\n  \n\n", "killed at last"),
        (f"{FRAMES}KeyError: 'text'\n", "KeyError: 'text'"),
        (f"{FRAMES}AssertionError\n", "AssertionError"),
        (
            f"{FRAMES}ValueError: no rows\n/x/y.py:7: UserWarning: not closed\n  warnings.warn('not closed')\n",
            "ValueError: no rows",
        ),
        (f"Epoch:[1/2](3/40) loss 2.1\n{FRAMES}ValueError: no rows\n\n  \n", "ValueError: no rows"),
        (
            f"{FRAMES}OSError: a\n\nDuring handling of the above exception, another exception occurred:\n\n"
            f"{FRAMES}RuntimeError: b\n",
            "RuntimeError: b",
        ),
        (
            f"{FRAMES}RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be "
            "asynchronously reported at some other API call.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
            "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\n",
            "RuntimeError: CUDA error: device-side assert triggered",
        ),
        (
            f"{FRAMES}RuntimeError: Error(s) in loading state_dict for Qwen3ForCausalLM:\n\tsize mismatch: 8, 16\n",
            "RuntimeError: Error(s) in loading state_dict for Qwen3ForCausalLM: size mismatch: 8, 16",
        ),
        (
            f"{FRAMES}OSError: Caught OSError in DataLoader worker process 0.\nOriginal {FRAMES}"
            "OSError: [Errno 5] Input/output error\n",
            "OSError: [Errno 5] Input/output error",
        ),
        (f"\r 50%|█████     | 5/10 [00:01<00:01,  4.9it/s]{FRAMES}ValueError: mid\n", "ValueError: mid"),
        (
            "saving the model\n\r 10%|█  | 1/10 [00:01<00:09,  1.0s/it]\r 20%|██ | 2/10 [00:02<00:08,  1.0s/it]\n",
            "saving the model",
        ),
        ("saving the model\n5it [00:01,  4.9it/s]\n", "saving the model"),
        ("loading\rloaded 7 files\r\n", "loaded 7 files"),
        ("".join(f"[rank1]: {line}\n" for line in f"{FRAMES}IndexError: far".splitlines()) + TABLE, "IndexError: far"),
        (f"{FRAMES}ValueError: ours\n{TABLE}", "ValueError: ours"),
        ("error: --epochs: must be at least 1 (got '0')\n", "error: --epochs: must be at least 1 (got '0')"),
        (f"{FRAMES}ValueError: x\nerror: out of memory: --batch_size 8\n", "error: out of memory: --batch_size 8"),
        (
            f"{FRAMES}ValueError: ours\nException ignored in: <function f at 0x7f>\n{FRAMES}TypeError: late\n",
            "ValueError: ours",
        ),
        ("    y = f(x)\ntorch.OutOfMemoryError: CUDA\nsome words\n", "torch.OutOfMemoryError: CUDA"),
        (
            f"{FRAMES}ValueError: ours\n[W1201 03:04:05.678 ProcessGroupNCCL.cpp:1496] Warning: WARNING: "
            "destroy_process_group() was not called\n",
            "ValueError: ours",
        ),
        ("step 7 done\n[812 bytes are missing here: the disk was full]\n", "step 7 done"),
        ("/x/y.py:7: FutureWarning: soon\n", "/x/y.py:7: FutureWarning: soon"),
        (f"{FRAMES}trainers.errors.Diverged: at step 3\n", "trainers.errors.Diverged: at step 3"),
        ("x" * 1000, "x" * 400),
    ],
)
def test_the_line_that_says_why(output, line):
    assert last_meaningful_line(output) == line


@pytest.mark.parametrize(
    "noise",
    [
        "",
        "------------------------------",
        "==============================",
        "/x/y.py:7: UserWarning: the cache is not closed",
        "  warnings.warn('the cache is not closed')",
        "warning: 3 of 10 rows of a.jsonl cannot be used and are skipped",
        "[rank0]:[W1201 03:04:05.678 ProcessGroupNCCL.cpp:1496] destroy_process_group() was not called",
        "W1201 03:04:05.678000 4242 torch/distributed/run.py:793] the default is to restart nothing",
        "I1201 03:04:05.678000 4242 somewhere/else.py:793] started",
        "CUDA kernel errors might be asynchronously reported at some other API call",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: there appear to be 6 leaked semaphore objects",
        "Exception ignored in: <function f at 0x7f>",
        "Root Cause (first observed failure):",
        "  exitcode  : 1 (pid: 4243)",
        "[the log ends here: its limit is 10 bytes]",
    ],
)
def test_what_says_nothing_is_passed_over(noise):
    assert last_meaningful_line(f"$ python -m trainers sft\nthe node is going down\n{noise}\n") == (
        "the node is going down"
    )
