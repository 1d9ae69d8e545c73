"""Start small PPO runs from random weights: ten prompts, four at a time, two optimizer steps in each of two passes."""

from tests.trainers.grpo_runs import FLAGS as GRPO_FLAGS
from trainers.attempt import run_attempt
from trainers.cli import parse_command

FLAGS = {name: value for name, value in GRPO_FLAGS.items() if name != "num_generations"} | {
    "batch_size": 4,
    "mini_batch_size": 2,
    "critic_learning_rate": 0.003,
    "update_old_actor_freq": 2,
    "early_stop_kl": 1e6,
}


def argv(run_dir: str, **flags: object) -> list[str]:
    """Return the command line of a small run, without the flags that are ``None``."""
    pairs = {"run_dir": run_dir, "device": "cpu", **FLAGS, **flags}
    return ["ppo", *(part for name, value in pairs.items() if value is not None for part in (f"--{name}", str(value)))]


def run_ppo(run_dir: str, **flags: object) -> int:
    """Run it in this process and return its exit code."""
    return run_attempt(parse_command(argv(run_dir, **flags)))
