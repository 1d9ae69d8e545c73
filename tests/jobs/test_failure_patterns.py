"""Each failure that ships, on a line that it really leaves."""

import pytest
from django.core.exceptions import ValidationError

from jobs.failure_patterns import KNOWN_FAILURES, ensure_known_failures
from jobs.models import FailurePattern
from jobs.worker.first_match import first_match

SHM = "shared memory (/dev/shm) is too small"
GPU_MEMORY, MEMORY = "the GPU ran out of memory", "the machine ran out of memory"
RANGE, OFFLINE = "a token or a label is outside its range", "something was to be downloaded, and training is offline"
DRIVER = "this GPU or its driver does not fit the installed PyTorch"
GPU, NCCL, DISK, FILES = "the GPU failed", "the processes lost each other", "the disk is full", "the file system failed"
PACKAGE, LOADER = "a Python package is missing or does not fit", "a process that loads data died"
DIVERGED, NATIVE, OUTSIDE = "the training diverged", "a crash in native code", "killed from outside"
LINES = [
    (GPU_MEMORY, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB."),
    (GPU_MEMORY, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    (GPU_MEMORY, "torch.AcceleratorError: CUDA error: out of memory"),
    (GPU_MEMORY, "torch.distributed.DistBackendError: NCCL error: Cuda failure 2 'out of memory'"),
    (SHM, "RuntimeError: unable to allocate shared memory(shm) for file </torch_71_1>: No space left on device (28)"),
    (SHM, "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory"),
    (SHM, "RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error. It is possible that dataloader's "
          "workers are out of shared memory. Please try to raise your shared memory limit."),
    (MEMORY, "RuntimeError: [enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: not enough memory: you tried to "
             "allocate 1152921504606846976 bytes. Error code 12 (Cannot allocate memory)"),
    (MEMORY, "MemoryError"),
    (MEMORY, "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 7.28 TiB for an array with shape (10, 10)"),
    (RANGE, "RuntimeError: CUDA error: device-side assert triggered"),
    (RANGE, "IndexError: index out of range in self"),
    (RANGE, "IndexError: Target 6400 is out of bounds."),
    (DRIVER, "RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    (DRIVER, "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."),
    (DRIVER, "RuntimeError: No CUDA GPUs are available"),
    (GPU, "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"),
    (GPU, "RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    (GPU, "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus."),
    (GPU, "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost."),
    (NCCL, "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1) "
           "ran for 600013 milliseconds before timing out."),
    (NCCL, "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, "
           "remote process exited or there was a network error, NCCL version 2.26.2"),
    (NCCL, "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
           "[127.0.0.1]:28542"),
    (NCCL, "the connection between the 4 processes broke"),
    (DISK, "OSError: [Errno 28] No space left on device: '/home/team/runs/7/checkpoint/optimizer.pt'"),
    (DISK, "OSError: [Errno 122] Disk quota exceeded"),
    (DISK, "the disk is full; make room, then resume from the last checkpoint"),
    (DISK, "RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 704 vs 598"),
    (DISK, "error: result.json cannot be written: No space left on device"),
    (FILES, "OSError: [Errno 30] Read-only file system: '/data/out/full_sft_512.pth'"),
    (FILES, "OSError: [Errno 116] Stale file handle"),
    (FILES, "OSError: [Errno 5] Input/output error"),
    ("too many open files", "OSError: [Errno 24] Too many open files: '/data/sft.jsonl'"),
    ("too many open files", "RuntimeError: received 0 items of ancdata"),
    ("unsafe weights were refused", "_pickle.UnpicklingError: Weights only load failed. This file can still be"),
    (DIVERGED, "the loss at step 12 is not finite (nan); lower --learning_rate"),
    (DIVERGED, "the gradient at step 12 is not finite (inf); lower --learning_rate or --grad_clip"),
    (DIVERGED, "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"),
    (OFFLINE, "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache"),
    (OFFLINE, "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries "
              "exceeded with url: /api/models/x (Caused by NewConnectionError: [Errno 111] Connection refused)"),
    (OFFLINE, "OSError: We couldn't connect to 'https://huggingface.co' to load the files"),
    (PACKAGE, "ModuleNotFoundError: No module named 'flash_attn'"),
    (PACKAGE, "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"),
    ("permission denied", "PermissionError: [Errno 13] Permission denied: '/data/sft.jsonl'"),
    (LOADER, "RuntimeError: DataLoader worker (pid(s) 71, 72) exited unexpectedly"),
    (LOADER, "RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed. "),
    (OUTSIDE, "the trainer was killed by SIGKILL (killed from outside; no sign of the kernel's memory killer)"),
    (NATIVE, "the trainer was killed by SIGSEGV (a crash in native code)"),
]  # fmt: skip


@pytest.mark.parametrize(("title", "line"), LINES)
def test_each_line_has_its_own_name_and_none_before_takes_it(title, line):
    found = first_match(KNOWN_FAILURES, ["Epoch:[1/2](30/400) loss:2.113 lr:5e-7 epoch_Time:3.0min", line])
    assert found is not None
    assert found.pattern.title == title


def test_every_known_failure_has_a_line_of_its_own():
    assert {known.title for known in KNOWN_FAILURES} == {title for title, _ in LINES}


@pytest.mark.parametrize(
    "line",
    [
        "Epoch:[1/2](30/400) loss:2.113 reward:0.71 kl_ref:0.02 advantages_std:0.9 learning_rate:5.0e-07",
        "ValueError: too many values to unpack (expected 2)",
        "KeyError: 'disk'",
        "--max_seq_len: must be at least 2 (got '0')",
        "the trainer ended with exit code 7",
        "the trainer was stopped from outside, after it saved a checkpoint",
    ],
)
def test_a_line_that_says_none_of_this_has_no_name(line):
    assert first_match(KNOWN_FAILURES, [line]) is None


def test_only_what_a_machine_does_is_tried_again():
    assert [known.title for known in KNOWN_FAILURES if known.machine_fault] == [GPU, NCCL, DISK, FILES]
    assert [known.title for known in KNOWN_FAILURES if known.out_of_memory] == [GPU_MEMORY, MEMORY]


@pytest.mark.django_db
def test_the_known_failures_are_there_from_the_first_migration_behind_an_operators_own():
    FailurePattern.objects.create(title="ours", pattern="No space left")
    titles = list(FailurePattern.objects.values_list("title", flat=True))
    assert titles == ["ours", *(known.title for known in KNOWN_FAILURES)]
    ensure_known_failures(FailurePattern)
    assert FailurePattern.objects.filter(builtin=True).count() == len(KNOWN_FAILURES)
    for pattern in FailurePattern.objects.all():
        pattern.full_clean()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("(", "no regular expression"),
        ("x*", "every line matches this"),
        (".*", "every line matches this"),
        ("(a+)+b", "a repetition of a repetition"),
        (r"(?:\w*x){2,}y", "a repetition of a repetition"),
    ],
)
def test_a_pattern_that_would_do_harm_is_refused_with_the_reason(text, word):
    with pytest.raises(ValidationError, match=word):
        FailurePattern(title="new", pattern=text).full_clean()
