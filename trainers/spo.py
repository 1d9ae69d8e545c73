"""SPO: learn from one completion per prompt, compared with a running estimate of what it would earn.

    python -m trainers spo --init_path runs/1/model --reasoning 0 --reward_model_path none --value_tracker prompt

The advantage of a completion is its reward minus the tracker's value before the update. ``--value_tracker global`` is
the MiniMind script's: one value for all prompts, advantages within +-5 and not whitened; it starts without an estimate,
so its first steps compare with the middle of the reward's range. ``prompt`` is the paper's: a value for each prompt,
estimated before training, advantages whitened over the optimizer batch (a batch of one therefore teaches nothing), and
prompts drawn by how uncertain their outcome is; an epoch then has as many draws as there are different prompts.

The loss is the clipped one of ``trainers.policy_loss`` with a k3 KL term, averaged within each completion, then over
completions. Old log-probabilities are those of the first update's own forward pass, so the ratio is exactly 1 there.
The tracker learns from a rollout once, after its last policy update, from all ranks together.

Source: SPO, arXiv 2509.13232.
"""

from functools import partial

import torch

from dataset.prompts import PromptRows
from trainers.configs import SPOConfig
from trainers.errors import ConfigurationError
from trainers.evaluation import evaluate_answers
from trainers.experience import Experience, TokenSums, completion_scores, split_experience
from trainers.models import check_positions, frozen_copy, load_policy
from trainers.offline_estimate import estimate_values
from trainers.optim import build_optimizer, finite_loss, learning_rate_at, optimizer_step
from trainers.paths import confine_path
from trainers.policy_loss import clipped_loss, clipped_tokens, per_token_kl, sequence_mean
from trainers.prompt_tracker import DistinctPrompts, PromptTracker
from trainers.prompting import check_sampling, samples_due, tokenize
from trainers.ranks import Ranks
from trainers.reward_model import load_reward_model
from trainers.rewards import reward_weights, score_completions
from trainers.rollout import RolloutEngine, TorchRolloutEngine, completion_texts
from trainers.rollout_records import RolloutWatch, rollout_metrics, sample_rows
from trainers.runtime import Outcome, Run
from trainers.schedule import Schedule
from trainers.tokenizer import load_tokenizer
from trainers.value_tracker import GlobalTracker, Memory, RewardScale, ValueTracker
from trainers.visits import Expected, measured_drift, visits_of_all

SAMPLING = ("temperature",)  # cannot change between two updates on one rollout
SHOWN = {
    "reward": "reward",
    "value/mean": "value",
    "rho": "rho",
    "kl": "kl",
    "loss": "loss",
    "completions/mean_length": "avg_len",
    "learning_rate": "lr",
}


def train(config: SPOConfig, run: Run) -> Outcome:
    """Train until the schedule or ``stop_at`` ends it."""
    tokenizer = load_tokenizer(config, kept=run.kept_model)
    rows = PromptRows(confine_path(config.data_path), tokenizer, config.max_seq_len, strict=config.strict)
    run.tell_skipped(rows.skipped)
    weights = reward_weights(config, has_answers=rows.has_answers)
    reward_model = load_reward_model(config.reward_model_path, run.device) if "reward_model" in weights else None
    policy = load_policy(config, tokenizer, kept=run.kept_model)
    # In eval mode throughout: with dropout, ratio and KL would compare noise instead of weights.
    policy.to(run.device).eval()  # type: ignore[arg-type]  # transformers wraps torch's method
    check_positions(policy, {"max_seq_len": config.max_seq_len, "max_gen_len": config.max_gen_len})
    reference = frozen_copy(policy) if config.beta else None  # of the starting weights
    forward = torch.compile(policy) if config.use_compile else policy
    optimizer = build_optimizer(policy, config)
    tracker, asked_rows = build_tracker(config, rows, run.ranks)
    schedule = Schedule.of(config, rows=len(asked_rows), ranks=run.ranks, updates_per_batch=config.num_iterations)
    run.resume(schedule, model=policy, optimizer=optimizer, tracker=tracker)
    run.keep_model(policy, tokenizer)
    check_sampling(run.extra, config, names=SAMPLING)
    if reference is not None:
        run.keep_reference(reference)
    batches = [Experience.of(state, run.device) for state in run.extra.get("batches", [])]
    expected = Expected(**run.extra["expected"]) if batches else None
    engine: RolloutEngine = TorchRolloutEngine(
        policy, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    score = partial(completion_scores, temperature=config.temperature, num_generations=1)
    reward = partial(score_completions, weights=weights, reward_model=reward_model)
    scale = RewardScale.of(weights)
    watch = RolloutWatch(run.log)
    evaluate = partial(evaluate_answers, policy, tokenizer, run, config)
    if isinstance(tracker, PromptTracker) and config.offline_samples and run.step == 0:
        estimate_values(
            tracker, asked_rows, run, config, engine=engine, tokenizer=tokenizer, reward=reward, scale=scale
        )

    while not run.target_reached(evaluate) and run.step < run.total_steps:
        run.begin_step()

        if expected is None:
            # 1. Rollout: one completion of each prompt of the optimizer batch in one go
            indices = tracker.rows_of(run.step, run.schedule)
            prompts = [asked_rows[index] for index in indices]  # B
            asked = tokenize(prompts, tokenizer, config, step=run.step)
            with run.autocast():
                rollout = engine.rollout(
                    asked, num_generations=1, max_gen_len=config.max_gen_len, temperature=config.temperature
                )
                drift = measured_drift(
                    tracker.last_samples(indices),
                    policy,
                    temperature=config.temperature,
                    pad_token_id=tokenizer.pad_token_id,
                    rows_at_once=config.batch_size,
                )  # [B]
            run.count("num_tokens", rollout.attention_mask.sum())

            # 2. Rewards
            texts = completion_texts(rollout, tokenizer)  # B
            rewards = reward(texts, prompts)
            batches = split_experience(rollout, rewards, config.batch_size)

            # 3. Advantages over what the tracker expected
            valued = tracker.values(indices)  # [B]
            advantages = tracker.advantages(rewards.total, valued, scale, run.ranks)  # [B]
            expected = Expected(indices, scale.to_reward(valued), advantages, drift)
            if samples_due(config, run.step, updates_per_rollout=config.num_iterations):
                decoded = [str(tokenizer.decode(ids)) for ids in asked]
                samples = sample_rows(run.step, decoded, prompts, texts, rollout, rewards, advantages)
                for row, baseline in zip(samples, expected.baselines.tolist(), strict=False):
                    row["completions"][0]["baseline"] = baseline
                    run.records.sample(row)

        num_completions = run.ranks.sum(len(expected.rows))  # B of all ranks
        num_batches = run.ranks.sum(len(batches))
        total_loss = torch.zeros((), device=run.device)
        sums = TokenSums()
        parts = expected.advantages.split([len(batch.rewards.total) for batch in batches])
        for batch, part in zip(batches, parts, strict=True):
            mask = batch.rollout.completion_mask  # [n, T]
            advantages = part.to(run.device)  # [n]
            with run.autocast():
                # 4. Log-probabilities of the policy; those of its first update are the old ones
                scored = score(forward, batch.rollout)
                per_token_logps = scored.per_token_logps  # [n, T]
                if batch.old_per_token_logps is None:
                    batch.old_per_token_logps = per_token_logps.detach()
                # 5. Log-probabilities of the reference
                if reference is not None and batch.ref_per_token_logps is None:
                    with torch.no_grad():
                        batch.ref_per_token_logps = score(reference, batch.rollout).per_token_logps

            # 6. KL divergence from the reference
            kl = torch.zeros_like(per_token_logps)  # [n, T]
            if batch.ref_per_token_logps is not None:
                kl = per_token_kl(per_token_logps, batch.ref_per_token_logps)
                sums.add(mask, kl=kl)

            # 7. Loss: this micro-batch's part of the mean over all completions
            bounds = {"epsilon": config.epsilon}
            per_token_loss = clipped_loss(per_token_logps, batch.old_per_token_logps, advantages, **bounds)
            loss = sequence_mean(per_token_loss + config.beta * kl, mask).sum() / num_completions
            loss = loss + scored.aux_loss / num_batches
            run.scaler.scale(loss).backward()
            total_loss += loss.detach()
            sums.add(
                mask,
                entropy=scored.entropy,
                clip_ratio=clipped_tokens(per_token_logps, batch.old_per_token_logps, advantages[:, None], **bounds),
            )
            sums.add_largest(
                mask, sampling_logp_difference=(batch.old_per_token_logps - batch.rollout.sampling_logps).abs()
            )

        # 8. Optimizer step
        mean_loss = finite_loss(run.ranks.sum(total_loss), step=run.step)
        learning_rate = learning_rate_at(run.step, run.total_steps, config)
        grad_norm = optimizer_step(
            optimizer,
            learning_rate=learning_rate,
            grad_clip=config.grad_clip,
            scaler=run.scaler,
            ranks=run.ranks,
            step=run.step,
        )

        # 9. Update of the rollout policy, and of the tracker once the rollout has served
        engine.update_policy(policy)
        served = run.step % config.num_iterations == 0
        if served:
            tracker.update(visits_of_all(expected, batches, scale, run.ranks))

        # 10. Log, save, and end here when asked to
        values = {
            "loss": mean_loss,
            "learning_rate": learning_rate,
            "grad_norm": grad_norm,
            **rollout_metrics(batches, 1, run.ranks),
            **tracker_metrics(tracker, expected, run.ranks),
            **sums.values(run.ranks),
            "num_tokens": run.extra["num_tokens"],
        }
        watch.look(values)
        if run.log_due():
            run.report(values, shown=SHOWN)
        if served:
            batches, expected = [], None
        run.extra["batches"] = [batch.state() for batch in batches]
        run.extra["expected"] = dict(vars(expected)) if expected is not None else {}
        run.extra["sampling"] = {name: getattr(config, name) for name in SAMPLING}
        run.save_or_stop()

    return run.finish(policy, tokenizer)


def build_tracker(
    config: SPOConfig, rows: PromptRows, ranks: Ranks
) -> tuple[ValueTracker, PromptRows | DistinctPrompts]:
    """Return the tracker that ``config`` asks for, and the prompts whose indices it knows.

    Raises:
        ConfigurationError: an optimizer batch of one completion, which whitening makes worthless.
    """
    memory = Memory.of(config)
    if config.value_tracker == "global":
        return GlobalTracker(memory), rows
    if config.batch_size * config.accumulation_steps * ranks.world_size == 1:
        raise ConfigurationError(
            "--value_tracker prompt compares the completions of an optimizer batch with each other; "
            "raise --batch_size or --accumulation_steps above 1"
        )
    distinct = DistinctPrompts(rows)
    return PromptTracker(distinct.keys, memory, seed=config.seed), distinct


def tracker_metrics(tracker: ValueTracker, expected: Expected, ranks: Ranks) -> dict[str, float]:
    """Return what was expected of this rollout, in units of reward, and how the tracker stands."""
    advantages = ranks.cat(expected.advantages)
    return {
        "value/mean": float(ranks.cat(expected.baselines).mean()),
        "advantages/mean": float(advantages.mean()),
        "advantages/std": float(advantages.std(unbiased=False)),
        "rho": tracker.rho,
        **tracker.metrics(),
    }
