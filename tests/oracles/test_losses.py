"""Our losses and their gradients next to TRL's, in settings where the definitions coincide."""

import pytest

from tests.oracles.cases import CASES
from tests.oracles.policy_cases import CISPO, EQUAL, loss_case, metrics_of

pytestmark = pytest.mark.filterwarnings(
    "ignore:You are (using|importing)", "ignore:`is_gradient_checkpointing`"
)  # TRL's
CLOSE = 1e-5


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient_are_trls(name):
    found = CASES[name]()
    assert found.value_difference <= CLOSE
    assert found.gradient_difference <= CLOSE


@pytest.mark.parametrize(
    "changed", [{"epsilon": 0.1}, {"beta": 0.05}, {"temperature": 0.9}], ids=lambda changed: next(iter(changed))
)
def test_the_comparison_sees_a_setting_that_differs(changed):
    found = loss_case(drift=0.3, beta=0.04, ours=changed)
    assert found.value_difference > 10 * CLOSE
    assert found.gradient_difference > 100 * CLOSE


def test_the_comparison_sees_a_cap_that_differs():
    found = loss_case(lengths=EQUAL, drift=2.0, ours={"epsilon_high": 4.0}, **CISPO)
    assert found.gradient_difference > 100 * CLOSE


def test_trl_logs_the_same_kl_entropy_and_share_of_clipped_tokens():
    metrics = metrics_of(beta=0.04)
    for ours, theirs in metrics.values():
        assert ours == pytest.approx(theirs, abs=CLOSE)
    assert 0.1 < metrics["clip_ratio/region_mean"][0] < 0.9
    assert metrics["kl"][0] > 1e-3
