"""The failures that every installation knows by name, the most telling first."""

from dataclasses import asdict, dataclass

from django.db import models

FIRST, APART = 1000, 10  # an operator's own have 100 unless he says otherwise, and come first


@dataclass(frozen=True, kw_only=True)
class KnownFailure:
    """What a line of the output means. A fault of the machine puts the job back in the queue."""

    title: str
    pattern: str
    advice: str
    machine_fault: bool = False
    out_of_memory: bool = False


KNOWN_FAILURES = (
    KnownFailure(
        title="the GPU ran out of memory",
        pattern=r"CUDA out of memory|CUDA error: out of memory|Cuda failure.*out of memory|OutOfMemoryError"
        r"|(?:CUBLAS|CUDNN|CUSOLVER)_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation",
        advice="Lower batch_size and raise accumulation_steps by as much: the result is the same.",
        out_of_memory=True,
    ),
    KnownFailure(
        title="shared memory (/dev/shm) is too small",
        pattern=r"insufficient shared memory|out of shared memory|allocate shared memory",
        advice="Give the container more (--shm-size, or shm_size in the compose file), or set num_workers to 0.",
    ),
    KnownFailure(
        title="the machine ran out of memory",
        pattern=r"DefaultCPUAllocator|^MemoryError\b|std::bad_alloc|Cannot allocate memory"
        r"|Unable to allocate .* for an array",
        advice="Lower batch_size or num_workers, or run fewer jobs on this machine at a time.",
        out_of_memory=True,
    ),
    KnownFailure(
        title="a token or a label is outside its range",
        pattern=r"device-side assert triggered|IndexError: index out of range in self|Target -?\d+ is out of bounds",
        advice="The data's ids do not fit the model: check that tokenizer_path belongs to the weights. The same on the "
        "CPU (--device cpu) names the line.",
    ),
    KnownFailure(
        title="this GPU or its driver does not fit the installed PyTorch",
        pattern=r"no kernel image is available|driver on your system is too old|driver version is insufficient"
        r"|Torch not compiled with CUDA|Found no NVIDIA driver|forward compatibility was attempted"
        r"|No CUDA GPUs are available",
        advice="An operator has to act: install a PyTorch for this GPU, or a newer driver. Then resume the job.",
    ),
    KnownFailure(
        title="the GPU failed",
        pattern=r"an illegal memory access|\bXid\b|uncorrectable (?:NVLink )?(?:ECC )?error|\bECC error|off the bus"
        r"|GPU is lost|unspecified launch failure|CUDA error: (?:hardware|unknown) error"
        r"|devices are busy or unavailable",
        advice="If it happens on one device only, drain that device and look for Xid lines in the host's kernel log; "
        "if on every device at the same step, it is a fault of the code.",
        machine_fault=True,
    ),
    KnownFailure(
        title="the processes lost each other",
        pattern=r"Watchdog caught collective operation timeout|NCCL error|NCCL communicator was aborted"
        r"|DistBackendError|DistNetworkError|DistStoreError|gloo.*(?:closed|reset) by peer"
        r"|connection between the \d+ processes broke",
        advice="One process stopped answering: look above in the log for which, and why. With NCCL_DEBUG=INFO in the "
        "worker's environment NCCL says more.",
        machine_fault=True,
    ),
    KnownFailure(
        title="the disk is full",
        pattern=r"No space left on device|Disk quota exceeded|the disk is full|\bENOSPC\b|database or disk is full"
        r"|PytorchStreamWriter failed writing|unexpected pos \d+ vs \d+",
        advice="Make room, or let a retention rule do it; the job continues from its last checkpoint.",
        machine_fault=True,
    ),
    KnownFailure(
        title="the file system failed",
        pattern=r"Read-only file system|Stale (?:NFS )?file handle|(?:Input/output|Remote I/O) error"
        r"|Transport endpoint is not connected",
        advice="Look at this host's mounts and its kernel log; drain its devices if it goes on.",
        machine_fault=True,
    ),
    KnownFailure(
        title="too many open files",
        pattern=r"Too many open files|received 0 items of ancdata",
        advice="Lower num_workers, or let an operator raise the worker's limit (ulimit -n).",
    ),
    KnownFailure(
        title="unsafe weights were refused",
        pattern=r"Weights only load failed|Unsupported global|UnpicklingError",
        advice="The file holds more than tensors, and loading it could run code. Save it again as safetensors, or as a "
        "plain state dict.",
    ),
    KnownFailure(
        title="the training diverged",
        pattern=r"(?:loss|gradient) at step \d+ is not finite|weights are too large for the scripts' fp16"
        r"|\bloss is (?:nan|inf)|returned nan values|probability tensor contains either",
        advice="Lower learning_rate or grad_clip, then resume from the last checkpoint, which is from before it.",
    ),
    KnownFailure(
        title="something was to be downloaded, and training is offline",
        pattern=r"OfflineModeIsEnabled|LocalEntryNotFoundError|couldn't connect to 'https?:|HTTPS?ConnectionPool"
        r"|ConnectionRefusedError|Max retries exceeded|Temporary failure in name resolution|Name or service not known",
        advice="Put the model or the data on this host and name its folder; nothing is downloaded at run time.",
    ),
    KnownFailure(
        title="a Python package is missing or does not fit",
        pattern=r"ModuleNotFoundError|ImportError: cannot import name|undefined symbol:|cannot open shared object file",
        advice="Install the requirements of this revision into the worker's environment, then resume the job.",
    ),
    KnownFailure(
        title="permission denied",
        pattern=r"PermissionError|Permission denied",
        advice="The worker's account may not use this path: change its owner or rights, or choose another path.",
    ),
    KnownFailure(
        title="a process that loads data died",
        pattern=r"DataLoader worker .*(?:is killed by signal|exited unexpectedly)",
        advice="Set num_workers to 0 to see its own error; killed ones mostly ran out of memory.",
    ),
    KnownFailure(
        title="killed from outside",
        pattern=r"trainer was killed by SIG(?:KILL|TERM|INT|HUP|QUIT)",
        advice="A person or a program on the host ended it: ask around and look into its kernel log. Resume continues "
        "from the last checkpoint.",
    ),
    KnownFailure(
        title="a crash in native code",
        pattern=r"trainer was killed by SIG(?:SEGV|ABRT|BUS|FPE|ILL)",
        advice="Resume it; if it crashes at the same step again, report the end of the log and the versions.",
    ),
)


def ensure_known_failures(failure_pattern: type[models.Model]) -> None:
    """Write the failures that ship, in order; a migration calls this when they change."""
    for place, known in enumerate(KNOWN_FAILURES):
        values = asdict(known) | {"order": FIRST + APART * place, "builtin": True}
        failure_pattern._default_manager.update_or_create(title=values.pop("title"), defaults=values)
