"""The real trainers under the real queue: SFT from nothing, then GRPO from its weights."""

import time

import pytest

from jobs.models import Job, LogChunk
from tests.e2e.conftest import wait_for, wait_for_status
from tests.jobs.rows import queued

pytestmark = pytest.mark.e2e
TINY = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "save_dir": "runs/out",
    "log_interval": 1,
    "max_gen_len": 8,
}
SFT = TINY | {"data_path": "../dataset/sft-mini.jsonl", "from_weight": "none", "batch_size": 8, "max_steps": 4}
GRPO = TINY | {
    "data_path": "../dataset/rlaif-mini.jsonl",
    "reward_model_path": "none",
    "reasoning": False,
    "num_generations": 4,
    "max_steps": 2,
    "sample_interval": 1,
    "eval_data_path": "../dataset/eval-mini.jsonl",
    "eval_size": 8,
}


def test_sft_and_the_grpo_job_that_starts_from_its_weights_come_back_whole(live_training):
    sft = queued("sft", params=SFT)
    asked_at = time.monotonic()
    grpo = queued("grpo", params=GRPO, start_from="job", depends_on=sft)
    log = live_training.home / "runs" / str(sft.pk) / "log.txt"
    wait_for(lambda: log.exists() and log.stat().st_size > 0, 20)
    print(f"submission to the trainer's first line: {time.monotonic() - asked_at:.2f} s")
    wait_for_status(sft, Job.Status.COMPLETED, 90)
    wait_for_status(grpo, Job.Status.COMPLETED, 90)
    assert list(sft.metrics.values_list("step", flat=True))[-4:] == [1, 2, 3, 4]
    assert {"reward", "kl", "completions/mean_length", "eval/greedy_accuracy"} <= set(grpo.last_values)
    sample = grpo.samples.filter(kind="train").first()
    assert len(sample.completions) == 4
    assert {"model/config.json", "model/model.safetensors"} <= set(grpo.artifacts.values_list("path", flat=True))
    first_line = LogChunk.objects.filter(job=grpo).order_by("offset").first().content.decode().splitlines()[0]
    assert first_line.startswith(f"$ python -m trainers grpo --run_dir runs/{grpo.pk} ")
    assert f"--init_path runs/{sft.pk}/model" in first_line


def test_a_wrong_path_is_one_clear_line(live_training):
    job = queued("sft", params=SFT | {"data_path": "../dataset/absent.jsonl"})
    wait_for_status(job, Job.Status.FAILED, 30)
    assert job.attempts.get().exit_code == 2
    assert "absent.jsonl" in job.cause
