"""The smoke test that ships with each training type, queued together and run by the real worker."""

import pytest

from jobs.builtin_configs import builtin_configs
from jobs.models import Job, LogChunk
from tests.e2e.conftest import wait_for_status
from tests.jobs.rows import queued
from trainers.configs import TRAINING_TYPES

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
SMOKE_TESTS = {found.training_type: found.params for found in builtin_configs() if found.name == "CPU smoke test"}
SHORT = {"max_steps": 2, "save_dir": "runs/out", "save_interval": 2}
MEASURED = {
    "pretrain": {"loss", "grad_norm"},
    "sft": {"loss", "grad_norm"},
    "lora": {"loss", "grad_norm"},
    "dpo": {"loss", "rewards/margins", "rewards/accuracies", "logps/chosen"},
    "reward": {"loss", "accuracy", "margin"},
    "ppo": {"loss", "value_loss", "kl", "approx_kl", "reward", "explained_variance", "completions/mean_length"},
    "grpo": {"loss", "kl", "reward", "frac_reward_zero_std", "completions/mean_length"},
    "spo": {"loss", "kl", "reward", "rho", "completions/mean_length"},
    "distillation": {"loss", "ce_loss", "distillation_loss"},
}


def test_the_smoke_test_of_every_type_runs_from_the_weights_that_the_one_of_sft_makes(live_training):
    sft = queued("sft", params=SMOKE_TESTS["sft"] | SHORT)
    jobs = {"sft": sft} | {
        name: queued(name, params=SMOKE_TESTS[name] | SHORT, depends_on=sft) for name in TRAINING_TYPES if name != "sft"
    }
    for name, job in jobs.items():
        wait_for_status(job, Job.Status.COMPLETED, 120)
        assert job.step == job.total_steps == 2, name
        assert MEASURED[name] | {"learning_rate", "num_tokens"} <= set(job.last_values), name
        assert {"model/config.json", "model/model.safetensors"} <= set(job.artifacts.values_list("path", flat=True)), (
            name
        )
        log = LogChunk.objects.filter(job=job).order_by("offset").first().content.decode()
        assert log.startswith(f"$ python -m trainers {name} --run_dir runs/{job.pk} "), name
