"""The loss of distillation, worked out by hand."""

import math

import pytest
import torch

from trainers.distillation import distillation_loss

TAUGHT = torch.tensor([[-100, 1]])  # one label: position 0 predicts it


def logits_of(*values):
    """Return logits whose first position has ``values``; the second predicts nothing."""
    return torch.tensor([[values, [9.0, -9.0]]])  # [1, 2, 2]


@pytest.mark.parametrize(("temperature", "loss"), [(1.0, 0.327813), (2.0, 0.443776)])
def test_a_teacher_of_logits_2_and_0_over_an_even_student(temperature, loss):
    """At T = 1: sigma(2) log(2 sigma(2)) + sigma(-2) log(2 sigma(-2)); at T = 2 the KL is .110944, times 4."""
    found = distillation_loss(
        logits_of(0.0, 0.0), logits_of(2.0, 0.0), TAUGHT, temperature=temperature, num_label_tokens=1
    )
    assert found.item() == pytest.approx(loss, abs=1e-6)


def test_it_is_the_forward_divergence_which_the_other_way_round_is_larger_here():
    """KL(teacher || student) of an even teacher: -log(2) - log(sigma(2) sigma(-2)) / 2, the reverse of the above."""
    found = distillation_loss(logits_of(2.0, 0.0), logits_of(0.0, 0.0), TAUGHT, temperature=1.0, num_label_tokens=1)
    assert found.item() == pytest.approx(0.433781, abs=1e-6)


def test_the_gradient_is_the_temperature_times_the_difference_of_the_distributions():
    """d/ds T^2 KL = T (q - p): at T = 2, q is even and p is sigma(1) = .731059 of the first token."""
    student = logits_of(0.0, 0.0).requires_grad_()
    distillation_loss(student, logits_of(2.0, 0.0), TAUGHT, temperature=2.0, num_label_tokens=1).backward()
    assert student.grad[0, 0].tolist() == pytest.approx([2 * (0.5 - 0.731059), 2 * (0.5 - 0.268941)], abs=1e-6)
    assert student.grad[0, 1].tolist() == [0.0, 0.0], "the last position predicts nothing"


def test_a_student_that_equals_its_teacher_has_loss_and_gradient_zero():
    torch.manual_seed(0)
    teacher = torch.randn(2, 4, 9)
    student = teacher.clone().requires_grad_()
    loss = distillation_loss(student, teacher, torch.zeros(2, 4).long(), temperature=1.5, num_label_tokens=6)
    loss.backward()
    assert loss.item() == pytest.approx(0.0, abs=1e-6)
    assert student.grad.abs().max().item() < 1e-6


def test_the_mean_is_over_all_label_tokens_of_the_step():
    """Report 13: four tokens of loss .327813 in one micro-batch and one of .433781 in another are a mean of five."""
    even, sharp = torch.zeros(1, 5, 2), torch.tensor([2.0, 0.0]).expand(1, 5, 2)
    parts = [
        distillation_loss(even, sharp, torch.tensor([[-100, 1, 1, 1, 1]]), temperature=1.0, num_label_tokens=5),
        distillation_loss(
            sharp, even, torch.tensor([[-100, 1, -100, -100, -100]]), temperature=1.0, num_label_tokens=5
        ),
    ]
    assert sum(parts).item() == pytest.approx((4 * 0.327813 + 0.433781) / 5, abs=1e-6)


def test_loss_and_gradient_depend_neither_on_the_split_nor_on_padding():
    torch.manual_seed(0)
    labels = torch.randint(0, 7, (8, 5))
    labels[torch.rand(8, 5) < 0.4] = -100
    labels[:, 3:] = -100  # padding: removed with the last split
    teacher = torch.randn(8, 5, 7)
    total = int((labels[:, 1:] != -100).sum())
    found = []
    for rows, length in ((8, 5), (3, 5), (1, 5), (2, 3)):
        student = torch.linspace(-2, 2, 8 * 5 * 7).view(8, 5, 7).requires_grad_()
        loss = sum(
            distillation_loss(*(part[:, :length] for part in parts), temperature=2.0, num_label_tokens=total)
            for parts in zip(student.split(rows), teacher.split(rows), labels.split(rows), strict=True)
        )
        loss.backward()
        found.append((loss.detach(), student.grad))
    for loss, gradient in found[1:]:
        torch.testing.assert_close(loss, found[0][0])
        torch.testing.assert_close(gradient, found[0][1])


def test_without_a_label_loss_and_gradient_are_zero_and_not_nan():
    """Report 11: the scripts' mean over no token is 0/0."""
    student = torch.randn(2, 3, 4, requires_grad=True)
    nothing = torch.full((2, 3), -100)
    loss = distillation_loss(student, torch.randn(2, 3, 4), nothing, temperature=1.5, num_label_tokens=0)
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(student.grad, torch.zeros(2, 3, 4))


def test_what_is_not_taught_may_hold_anything():
    """Only label positions enter the softmax, so not a number elsewhere stays there."""
    student, teacher = logits_of(0.0, 0.0), logits_of(2.0, 0.0)
    student[0, 1], teacher[0, 1] = math.nan, math.inf
    found = distillation_loss(student, teacher, TAUGHT, temperature=1.0, num_label_tokens=1)
    assert found.item() == pytest.approx(0.327813, abs=1e-6)


def test_a_token_that_the_teacher_rules_out_is_no_nan():
    """p = [1, 0], q even: 1 * log(1 / .5) + 0."""
    teacher = logits_of(0.0, -math.inf)
    found = distillation_loss(logits_of(0.0, 0.0), teacher, TAUGHT, temperature=1.0, num_label_tokens=1)
    assert found.item() == pytest.approx(math.log(2))


def test_logits_of_half_precision_are_compared_in_fp32():
    student, teacher = logits_of(0.0, 0.0).bfloat16(), logits_of(2.0, 0.0).bfloat16()
    found = distillation_loss(student, teacher, TAUGHT, temperature=1.0, num_label_tokens=1)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(0.327813, abs=1e-6)
