"""What to change when memory ran out, computed from the run's own parameters. Imports no torch."""

import math

from trainers.configs import RolloutConfig, TrainConfig


def memory_advice(config: TrainConfig) -> str:
    """Return which parameters to lower, with values, for the same result in less memory where that is possible."""
    size = f"batch_size {config.batch_size}, max_seq_len {config.max_seq_len}"
    cut = {name: getattr(config, name) for name in ("batch_size", "mini_batch_size") if hasattr(config, name)}
    if (shared := math.gcd(*cut.values())) > 1:
        by = next(part for part in range(2, shared + 1) if shared % part == 0)
        smaller = " ".join(f"--{name} {value // by}" for name, value in cut.items())
        steps = config.accumulation_steps * by
        return f"with {size}; {smaller} --accumulation_steps {steps} gives the same result in less memory"
    if isinstance(config, RolloutConfig):
        return f"with {size}; try --max_gen_len {max(1, config.max_gen_len // 2)}, fewer generations or a smaller model"
    return f"with {size}; try --max_seq_len {max(2, config.max_seq_len // 2)} or a smaller model"


def host_memory_advice(config: TrainConfig) -> str:
    """Return what to change when the memory beside the GPU ran out, which no smaller batch gives back."""
    if config.num_workers:
        return (
            f"the memory of the machine, not the GPU's: with num_workers {config.num_workers}; "
            f"try --num_workers {config.num_workers // 2}, or fewer jobs on this machine at a time"
        )
    return "the memory of the machine, not the GPU's: run fewer jobs on it at a time, or give its container more"
