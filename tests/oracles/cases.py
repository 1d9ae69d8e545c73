"""Every comparison with TRL, by name."""

from tests.oracles import imitation_cases, policy_cases, ppo_cases, preference_cases

CASES = policy_cases.CASES | ppo_cases.CASES | preference_cases.CASES | imitation_cases.CASES
