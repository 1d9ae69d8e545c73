import pytest
import torch

from trainers.device import choose_device, device_name
from trainers.errors import ConfigurationError
from trainers.ranks import Ranks


@pytest.fixture
def four_gpus(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    chosen: list[int] = []
    monkeypatch.setattr("torch.cuda.set_device", chosen.append)
    return chosen


def test_without_a_gpu_it_is_the_cpu(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert choose_device(None) == torch.device("cpu")
    assert choose_device(None, ranks=Ranks(1, 2, 1)) == torch.device("cpu")


def test_alone_it_is_the_first_gpu_or_the_one_that_is_named(four_gpus):
    assert choose_device(None) == torch.device("cuda", 0)
    assert choose_device("cuda:2") == torch.device("cuda", 2)
    assert choose_device("cuda") == torch.device("cuda", 0)
    assert choose_device("cpu") == torch.device("cpu")
    assert four_gpus == [0, 2, 0]


def test_each_process_takes_the_gpu_of_its_number_on_its_machine(four_gpus):
    assert choose_device(None, ranks=Ranks(5, 8, local_rank=1)) == torch.device("cuda", 1)


def test_several_processes_cannot_be_given_one_gpu(four_gpus):
    with pytest.raises(ConfigurationError, match=r"^--device cuda:0: each of 2 processes takes its own; leave it out$"):
        choose_device("cuda:0", ranks=Ranks(0, 2))


def test_more_processes_than_gpus_are_refused(four_gpus):
    with pytest.raises(ConfigurationError, match=r"^--device cuda:4: there are 4 GPUs here; use cpu, cuda:0, "):
        choose_device(None, ranks=Ranks(4, 5, local_rank=4))


def test_the_processor_has_a_name():
    assert device_name(torch.device("cpu"))
