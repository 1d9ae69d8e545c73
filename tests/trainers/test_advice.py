"""What to change when memory ran out."""

import pytest

from trainers.advice import host_memory_advice, memory_advice
from trainers.configs import GRPOConfig, PPOConfig, SFTConfig


@pytest.mark.parametrize(
    ("config", "advice"),
    [
        (SFTConfig(batch_size=16), "--batch_size 8 --accumulation_steps 2 gives the same result"),
        (SFTConfig(batch_size=6, accumulation_steps=4), "--batch_size 3 --accumulation_steps 8 gives the same result"),
        (SFTConfig(batch_size=7), "--batch_size 1 --accumulation_steps 7 gives the same result"),
        (SFTConfig(batch_size=1), "try --max_seq_len 170"),
        (GRPOConfig(batch_size=1), "try --max_gen_len 768"),
        (
            PPOConfig(batch_size=12, mini_batch_size=4),
            "--batch_size 6 --mini_batch_size 2 --accumulation_steps 2 gives the same result",
        ),
        (PPOConfig(batch_size=2, mini_batch_size=1), "try --max_gen_len 768"),
    ],
)
def test_memory_advice_names_values_that_halve_the_need(config, advice):
    assert advice in memory_advice(config)


def test_the_machines_memory_is_given_back_by_fewer_loading_processes():
    assert "try --num_workers 4, or fewer jobs" in host_memory_advice(SFTConfig(num_workers=8))
    assert "run fewer jobs on it" in host_memory_advice(SFTConfig(num_workers=0))
