"""GRPO, and its CISPO variant: learn from how each completion compares with the others of its prompt.

    python -m trainers grpo --init_path runs/1/model --reasoning 0 --reward_model_path none

Advantages are rewards in standard deviations of their group (population, plus 1e-4). The KL estimate is k3, with
gradient. Token losses are averaged within each completion, then over completions. All completions of an optimizer batch
are sampled at once and learned from in micro-batches; how it is cut changes nothing. Old log-probabilities are those of
the first update's own forward pass, so the ratio is exactly 1 there; those from decoding differ by rounding and are a
metric.

Source: DeepSeekMath, arXiv 2402.03300; CISPO: MiniMax-M1, arXiv 2506.13585.
"""

from functools import partial

import torch
from torch import Tensor

from dataset.prompts import PromptRows
from trainers.configs import GRPOConfig
from trainers.evaluation import evaluate_answers
from trainers.experience import Experience, TokenSums, completion_scores, split_experience
from trainers.models import check_positions, frozen_copy, load_policy
from trainers.optim import build_optimizer, finite_loss, learning_rate_at, optimizer_step
from trainers.paths import confine_path
from trainers.policy_loss import cispo_loss, clipped_loss, clipped_tokens, per_token_kl, sequence_mean
from trainers.prompting import check_sampling, samples_due, tokenize
from trainers.reward_model import load_reward_model
from trainers.rewards import reward_weights, score_completions
from trainers.rollout import RolloutEngine, TorchRolloutEngine, completion_texts
from trainers.rollout_records import RolloutWatch, rollout_metrics, sample_rows
from trainers.runtime import Outcome, Run
from trainers.schedule import Schedule
from trainers.tokenizer import load_tokenizer

SAMPLING = ("num_generations", "temperature")  # cannot change between two updates on one rollout
SHOWN = {"reward": "reward", "kl": "kl", "loss": "loss", "completions/mean_length": "avg_len", "learning_rate": "lr"}


def train(config: GRPOConfig, run: Run) -> Outcome:
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
    schedule = Schedule.of(config, rows=len(rows), ranks=run.ranks, updates_per_batch=config.num_iterations)
    run.resume(schedule, model=policy, optimizer=optimizer)
    run.keep_model(policy, tokenizer)
    check_sampling(run.extra, config, names=SAMPLING)
    if reference is not None:
        run.keep_reference(reference)
    batches = [Experience.of(state, run.device) for state in run.extra.get("batches", [])]
    engine: RolloutEngine = TorchRolloutEngine(
        policy, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    score = partial(completion_scores, temperature=config.temperature, num_generations=config.num_generations)
    watch = RolloutWatch(run.log)
    evaluate = partial(evaluate_answers, policy, tokenizer, run, config)

    while not run.target_reached(evaluate) and run.step < run.total_steps:
        run.begin_step()

        if not batches:
            # 1. Rollout: all completions of the optimizer batch in one go
            prompts = [rows[index] for index in run.schedule.rows_of(run.step)]  # B
            asked = tokenize(prompts, tokenizer, config, step=run.step)
            with run.autocast():
                rollout = engine.rollout(
                    asked,
                    num_generations=config.num_generations,
                    max_gen_len=config.max_gen_len,
                    temperature=config.temperature,
                )
            run.count("num_tokens", rollout.attention_mask.sum())

            # 2. Rewards
            texts = completion_texts(rollout, tokenizer)  # B*G
            rewards = score_completions(
                texts, [prompt for prompt in prompts for _ in range(config.num_generations)], weights, reward_model
            )
            batches = split_experience(rollout, rewards, config.batch_size * config.num_generations)
            if samples_due(config, run.step, updates_per_rollout=config.num_iterations):
                for row in sample_rows(
                    run.step,
                    [str(tokenizer.decode(ids)) for ids in asked],
                    prompts,
                    texts,
                    rollout,
                    rewards,
                    group_advantages(rewards.total, config.num_generations),
                ):
                    run.records.sample(row)

        num_completions = run.ranks.sum(sum(len(batch.rewards.total) for batch in batches))  # B*G of all ranks
        num_batches = run.ranks.sum(len(batches))
        total_loss = torch.zeros((), device=run.device)
        sums = TokenSums()
        for batch in batches:
            mask = batch.rollout.completion_mask  # [n, T]
            with run.autocast():
                # 3. Log-probabilities of the policy; those of its first update are the old ones
                scored = score(forward, batch.rollout)
                per_token_logps = scored.per_token_logps  # [n, T]
                if batch.old_per_token_logps is None:
                    batch.old_per_token_logps = per_token_logps.detach()
                # 4. Log-probabilities of the reference
                if reference is not None and batch.ref_per_token_logps is None:
                    with torch.no_grad():
                        batch.ref_per_token_logps = score(reference, batch.rollout).per_token_logps

            # 5. Advantages
            advantages = group_advantages(batch.rewards.total, config.num_generations).to(run.device)  # [n]

            # 6. KL divergence from the reference
            kl = torch.zeros_like(per_token_logps)  # [n, T]
            if batch.ref_per_token_logps is not None:
                kl = per_token_kl(per_token_logps, batch.ref_per_token_logps)
                sums.add(mask, kl=kl)

            # 7. Loss: this micro-batch's part of the mean over all completions
            per_token_loss = policy_loss(per_token_logps, batch.old_per_token_logps, advantages, config)
            loss = sequence_mean(per_token_loss + config.beta * kl, mask).sum() / num_completions
            loss = loss + scored.aux_loss / num_batches
            run.scaler.scale(loss).backward()
            total_loss += loss.detach()
            sums.add(
                mask,
                entropy=scored.entropy,
                clip_ratio=held_back(per_token_logps, batch.old_per_token_logps, advantages, config),
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

        # 9. Update of the rollout policy
        engine.update_policy(policy)

        # 10. Log, save, and end here when asked to
        values = {
            "loss": mean_loss,
            "learning_rate": learning_rate,
            "grad_norm": grad_norm,
            **rollout_metrics(batches, config.num_generations, run.ranks),
            **sums.values(run.ranks),
            "num_tokens": run.extra["num_tokens"],
        }
        watch.look(values)
        if run.log_due():
            run.report(values, shown=SHOWN)
        if run.step % config.num_iterations == 0:
            batches = []
        run.extra["batches"] = [batch.state() for batch in batches]
        run.extra["sampling"] = {name: getattr(config, name) for name in SAMPLING}
        run.save_or_stop()

    return run.finish(policy, tokenizer)


def group_advantages(rewards: Tensor, num_generations: int) -> Tensor:
    """Return how far each reward is from its group's mean, in group standard deviations.

    Completions of one prompt are neighbours in ``rewards``. A group whose rewards are all
    equal gets zeros: it teaches nothing.

    Args:
        rewards: Reward of each completion, [B*G].
        num_generations: Completions per prompt, G.

    Returns:
        Advantages, [B*G].

    Source: DeepSeekMath, arXiv 2402.03300, section 4.1.
    """
    groups = rewards.view(-1, num_generations)  # [B, G]
    # Taken from the first reward on, equal rewards are exactly 0; the mean of eight 0.7 is not 0.7 in float32.
    groups = groups - groups[:, :1]
    centered = groups - groups.mean(dim=1, keepdim=True)
    return (centered / (groups.std(dim=1, unbiased=False, keepdim=True) + 1e-4)).view(-1)


def policy_loss(per_token_logps: Tensor, old_per_token_logps: Tensor, advantages: Tensor, config: GRPOConfig) -> Tensor:
    """Return the loss of each token without its KL term, [N, T]."""
    if config.loss_type == "cispo":
        return cispo_loss(per_token_logps, old_per_token_logps, advantages, epsilon_high=config.epsilon_high)
    return clipped_loss(per_token_logps, old_per_token_logps, advantages, epsilon=config.epsilon)


@torch.no_grad()
def held_back(per_token_logps: Tensor, old_per_token_logps: Tensor, advantages: Tensor, config: GRPOConfig) -> Tensor:
    """Return 1 where the bound of the ratio holds a token's loss back, [N, T]."""
    if config.loss_type == "cispo":
        return ((per_token_logps - old_per_token_logps).exp() > config.epsilon_high).float()
    return clipped_tokens(per_token_logps, old_per_token_logps, advantages[:, None], epsilon=config.epsilon)
