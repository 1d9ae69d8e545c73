"""PPO: learn from how each token fares against what a critic expected, without moving far from the old actor.

    python -m trainers ppo --init_path runs/1/model --reasoning 0 --reward_model_path none

One completion per prompt. A completion earns its reward at its last token; generalized advantage estimation spreads it
over the tokens. Advantages are whitened over all tokens of the rollout (population variance), so what is learned is how
they compare: batches of one or two prompts teach little. A completion that ``max_gen_len`` cuts earns all of its reward
there, as in the script: the limit is part of the task, and a value beyond it would pay for going on.

Completions are sampled by the old actor, a snapshot that is refreshed every ``update_old_actor_freq`` rollouts, and the
clipped ratio is against its log-probabilities: exactly 1 after each refresh. The k3 KL from the reference is part of
the loss, not of the reward. Losses are means over the tokens of an optimizer step. A rollout serves
``ppo_update_iters`` passes of optimizer steps, each on mini_batch_size * accumulation_steps completions; once the actor
is ``early_stop_kl`` away from the old one, those that are left are skipped: no step, no decay, no momentum.

Source: Schulman et al., arXiv 1707.06347; GAE: arXiv 1506.02438.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from dataset.prompts import PromptRows
from trainers.configs import PPOConfig
from trainers.critic import build_critic, completion_values, critic_gradients, value_loss
from trainers.evaluation import evaluate_answers
from trainers.experience import TokenSums, completion_scores
from trainers.gae import gae
from trainers.logps import CompletionLogps
from trainers.models import check_positions, frozen_copy, load_policy
from trainers.optim import build_optimizer, finite_loss, learning_rate_at, optimizer_step
from trainers.paths import confine_path
from trainers.policy_loss import clipped_loss, clipped_tokens, per_token_kl, sequence_mean
from trainers.prompting import check_sampling, samples_due, tokenize
from trainers.reward_model import load_reward_model
from trainers.rewards import reward_weights, score_completions
from trainers.rollout import Rollout, RolloutEngine, TorchRolloutEngine, completion_texts
from trainers.rollout_records import RolloutWatch, rollout_metrics, sample_rows
from trainers.runtime import Outcome, Run
from trainers.schedule import Schedule
from trainers.tokenizer import load_tokenizer
from trainers.trajectories import Trajectories, critic_metrics, deal, judge, split_parts

__all__ = ["gae", "train", "value_loss"]

SAMPLING = ("temperature",)  # cannot change between two updates on one rollout
SHOWN = {
    "reward": "reward",
    "kl": "kl",
    "loss": "loss",
    "value_loss": "value_loss",
    "completions/mean_length": "avg_len",
    "learning_rate": "lr",
    "critic_learning_rate": "critic_lr",
}


def train(config: PPOConfig, run: Run) -> Outcome:
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
    reference = frozen_copy(policy) if config.kl_coef else None  # of the starting weights
    old_actor, critic = frozen_copy(policy), build_critic(policy)
    forward = torch.compile(policy) if config.use_compile else policy
    critic_forward = torch.compile(critic) if config.use_compile else critic
    optimizer, critic_optimizer = build_optimizer(policy, config), build_optimizer(critic, config)
    num_parts = math.ceil(config.batch_size / config.mini_batch_size)  # optimizer steps of one pass
    updates = config.ppo_update_iters * num_parts
    schedule = Schedule.of(config, rows=len(rows), ranks=run.ranks, updates_per_batch=updates)
    run.resume(
        schedule,
        model=policy,
        optimizer=optimizer,
        old_actor=old_actor,
        critic=critic,
        critic_optimizer=critic_optimizer,
    )
    run.keep_model(policy, tokenizer)
    check_sampling(run.extra, config, names=SAMPLING)
    if reference is not None:
        run.keep_reference(reference)
    batches = [Trajectories.of(state, run.device) for state in run.extra.get("batches", [])]
    engine: RolloutEngine = TorchRolloutEngine(
        old_actor, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    score = partial(completion_scores, temperature=config.temperature, num_generations=1)
    watch = RolloutWatch(run.log)
    evaluate = partial(evaluate_answers, policy, tokenizer, run, config)

    while not run.target_reached(evaluate) and run.step < run.total_steps:
        run.begin_step()
        rollouts_before, update = divmod(run.step - 1, updates)

        if not batches:
            # 1. Refresh of the old actor
            refreshed = rollouts_before % config.update_old_actor_freq == 0
            if refreshed:
                old_actor.load_state_dict(policy.state_dict())
                engine.update_policy(old_actor)

            # 2. Rollout: one completion of each prompt, those of one optimizer step side by side
            dealt = deal(run.schedule.rows_of(run.step), num_parts, run.ranks)
            prompts = [rows[index] for part in dealt.values() for index in part]  # B
            asked = tokenize(prompts, tokenizer, config, step=run.step)
            with run.autocast():
                rollout = engine.rollout(
                    asked, num_generations=1, max_gen_len=config.max_gen_len, temperature=config.temperature
                )
            run.count("num_tokens", rollout.attention_mask.sum())

            # 3. Rewards
            texts = completion_texts(rollout, tokenizer)  # B
            rewards = score_completions(texts, prompts, weights, reward_model)
            cut = split_parts(
                rollout, rewards, sizes=[len(part) for part in dealt.values()], rows_at_once=config.mini_batch_size
            )

            # 4. Log-probabilities of old actor and reference, values, advantages
            with torch.no_grad(), run.autocast():
                for part, batch in cut:
                    # Right after a refresh, the first step's own forward pass is the old actor's.
                    if part or not refreshed:
                        batch.old_per_token_logps = score(old_actor, batch.rollout).per_token_logps
                    if reference is not None:
                        batch.ref_per_token_logps = score(reference, batch.rollout).per_token_logps
                old_values = [completion_values(critic, batch.rollout)[0] for _, batch in cut]
            batches = judge(cut, old_values, gamma=config.gamma, lam=config.lam, ranks=run.ranks)
            run.extra["stopped"] = False
            if samples_due(config, run.step, updates_per_rollout=updates):
                means = [sequence_mean(batch.advantages, batch.rollout.completion_mask) for batch in batches]
                for row in sample_rows(
                    run.step,
                    [str(tokenizer.decode(ids)) for ids in asked],
                    prompts,
                    texts,
                    rollout,
                    rewards,
                    torch.cat(means),
                ):
                    run.records.sample(row)

        learned = [batch for batch in batches if batch.part == update % num_parts]
        num_tokens = run.ranks.sum(sum(int(batch.rollout.lengths.sum()) for batch in learned))  # of all ranks
        num_batches = run.ranks.sum(len(learned))
        values = rollout_metrics(batches, 1, run.ranks) | critic_metrics(batches, run.ranks)
        values["num_tokens"] = run.extra["num_tokens"]
        if num_tokens and not run.extra["stopped"]:
            # 5. Gradients of the actor, and the distance it has moved
            sums = TokenSums()
            actor_loss = actor_gradients(forward, learned, score, config, run, sums, num_tokens, num_batches)
            values["loss"] = finite_loss(run.ranks.sum(actor_loss), step=run.step)
            values |= sums.values(run.ranks)
            run.extra["stopped"] = values["approx_kl"] > config.early_stop_kl

        if run.extra["stopped"]:
            optimizer.zero_grad(set_to_none=True)
            run.extra["early_stopped"] = run.extra.get("early_stopped", 0) + 1
        elif num_tokens:
            # 6. Optimizer step of the actor
            values["learning_rate"] = learning_rate_at(run.step, run.total_steps, config)
            values["grad_norm"] = optimizer_step(
                optimizer,
                learning_rate=values["learning_rate"],
                grad_clip=config.grad_clip,
                scaler=run.scaler,
                ranks=run.ranks,
                step=run.step,
            )
            # 7. Gradients and optimizer step of the critic; after the actor's, for the scaler may change in between
            sums = TokenSums()
            critic_loss = critic_gradients(critic_forward, learned, config, run, sums, num_tokens, num_batches)
            rate = "critic_learning_rate"
            values["value_loss"] = finite_loss(run.ranks.sum(critic_loss), step=run.step, rate=rate)
            values |= sums.values(run.ranks)
            values[rate] = learning_rate_at(run.step, run.total_steps, config, peak=config.critic_learning_rate)
            values["critic_grad_norm"] = optimizer_step(
                critic_optimizer,
                learning_rate=values[rate],
                grad_clip=config.grad_clip,
                scaler=run.scaler,
                ranks=run.ranks,
                step=run.step,
                rate=rate,
            )

        # 8. Log, save, and end here when asked to
        values["early_stopped"] = run.extra.get("early_stopped", 0)
        watch.look(values | {"early_stop": float(run.extra["stopped"])})
        if run.log_due():
            run.report(values, shown=SHOWN)
        if run.step % updates == 0:
            batches = []
        run.extra["batches"] = [batch.state() for batch in batches]
        run.extra["sampling"] = {name: getattr(config, name) for name in SAMPLING}
        run.save_or_stop()

    return run.finish(policy, tokenizer)


def actor_gradients(
    forward: Any,
    batches: Sequence[Trajectories],
    score: Callable[[Any, Rollout], CompletionLogps],
    config: PPOConfig,
    run: Run,
    sums: TokenSums,
    num_tokens: Tensor,
    num_batches: Tensor,
) -> Tensor:
    """Add the gradients of this rank's part of an optimizer step, and return its part of the loss."""
    total_loss = torch.zeros((), device=run.device)
    for batch in batches:
        mask = batch.rollout.completion_mask  # [n, T]
        with run.autocast():
            scored = score(forward, batch.rollout)
        per_token_logps = scored.per_token_logps  # [n, T]
        if batch.old_per_token_logps is None:
            batch.old_per_token_logps = per_token_logps.detach()
        old = batch.old_per_token_logps  # [n, T]

        per_token_loss = clipped_loss(per_token_logps, old, batch.advantages, epsilon=config.clip_epsilon)  # [n, T]
        if batch.ref_per_token_logps is not None:
            kl = per_token_kl(per_token_logps, batch.ref_per_token_logps)  # [n, T]
            per_token_loss = per_token_loss + config.kl_coef * kl
            sums.add(mask, kl=kl)
        loss = (per_token_loss * mask).sum() / num_tokens + scored.aux_loss / num_batches
        run.scaler.scale(loss).backward()
        total_loss += loss.detach()
        sums.add(
            mask,
            approx_kl=0.5 * (per_token_logps - old).square(),
            entropy=scored.entropy,
            clip_ratio=clipped_tokens(per_token_logps, old, batch.advantages, epsilon=config.clip_epsilon),
        )
        sums.add_largest(
            mask,
            ratio_difference=((per_token_logps - old).exp() - 1).abs(),
            sampling_logp_difference=(old - batch.rollout.sampling_logps).abs(),
        )
    return total_loss
