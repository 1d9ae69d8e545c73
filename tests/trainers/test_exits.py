import os
from pathlib import Path

import pytest
import safetensors.torch
import torch

from dataset.errors import DataError
from trainers.configs import SFTConfig
from trainers.errors import ConfigurationError, Diverged, Stopped, as_configuration_error
from trainers.exits import exit_of
from trainers.paths import PathRefused


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("x"), 2),
        (DataError("a.jsonl", 3, "x"), 2),
        (PathRefused("x"), 2),
        (Stopped("x"), 3),
        (torch.OutOfMemoryError("CUDA out of memory"), 4),
        (MemoryError(), 4),
        (Diverged("x"), 1),
        (ValueError("x"), 1),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: not enough memory: you tried"), 4),
        (RuntimeError("shapes do not fit"), 1),
    ],
)
def test_each_error_has_its_exit_code(error, code):
    assert exit_of(error, SFTConfig()).code == code


def save_with_torch(state):
    with open("/dev/full", "wb") as file:
        torch.save(state, file)


def save_with_safetensors(state):
    Path("/dev/full").write_bytes(safetensors.torch.save(state))


@pytest.mark.parametrize("save", [save_with_torch, save_with_safetensors])
def test_a_full_disk_is_one_line_whichever_library_met_it(save):
    with pytest.raises(Exception, match=r".") as refused:
        save({"weight": torch.zeros(100_000)})
    ending = exit_of(refused.value, SFTConfig())
    line = "the disk is full; make room, then resume from the last checkpoint"
    assert (ending.code, ending.line, ending.log) == (1, line, f"error: {line}")


def test_a_real_refusal_of_the_cpu_allocator_is_out_of_memory():
    with pytest.raises(RuntimeError) as refused:
        torch.empty(2**60, dtype=torch.uint8)
    assert exit_of(refused.value, SFTConfig()).code == 4


def test_a_refusal_of_memory_while_a_file_is_read_is_no_damaged_file():
    with pytest.raises(MemoryError), as_configuration_error("x.pth is no weight file"):
        raise MemoryError
    with (
        pytest.raises(ConfigurationError, match=r"^x\.pth is no weight file \(EOFError\); try another$"),
        as_configuration_error("x.pth is no weight file", "; try another"),
    ):
        raise EOFError


def test_a_persons_mistake_has_no_traceback_and_a_fault_has_one():
    assert exit_of(ConfigurationError("fix it"), SFTConfig()).log == "error: fix it"
    try:
        raise ValueError("a fault\nwith details")
    except ValueError as fault:
        ending = exit_of(fault, SFTConfig())
    assert ending.line == "ValueError: a fault"
    assert ending.log.startswith("Traceback (most recent call last):")


@pytest.mark.parametrize(("number", "code"), [(5, 1), (28, 1), (116, 1), (2, 2), (13, 2), (30, 2)])
def test_a_file_that_cannot_be_read_is_a_mistake_unless_the_disk_itself_failed(number, code):
    refused = DataError("a.jsonl", None, f"cannot be read: {os.strerror(number)}")
    refused.__context__ = OSError(number, os.strerror(number))  # as raising it where that is handled leaves it
    ending = exit_of(refused, SFTConfig())
    assert (ending.code, ending.log) == (code, f"error: a.jsonl: cannot be read: {os.strerror(number)}")
