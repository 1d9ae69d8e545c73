"""Random models small enough to check every token of, and a tokenizer of single words."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

VOCAB = 24
SHARP = 6.0  # weights are multiplied by it: a fresh model is nearly uniform, and a wrong mask would hardly show


def tiny_qwen3(seed: int = 0, **changes: object) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    config = Qwen3Config(
        **{
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "max_position_embeddings": 256,
            "tie_word_embeddings": True,
            **changes,
        }
    )
    return _sharpened(Qwen3ForCausalLM(config))


def tiny_moe(seed: int = 0) -> Qwen3MoeForCausalLM:
    torch.manual_seed(seed)
    return _sharpened(
        Qwen3MoeForCausalLM(
            Qwen3MoeConfig(
                vocab_size=VOCAB,
                hidden_size=32,
                intermediate_size=64,
                moe_intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                head_dim=8,
                num_experts=4,
                num_experts_per_tok=1,
                max_position_embeddings=256,
                output_router_logits=True,
                router_aux_loss_coef=0.01,
            )
        )
    )


def tiny_gpt2(seed: int = 0) -> GPT2LMHeadModel:
    torch.manual_seed(seed)
    return _sharpened(
        GPT2LMHeadModel(
            GPT2Config(
                vocab_size=VOCAB,
                n_embd=32,
                n_layer=2,
                n_head=4,
                n_positions=64,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
            )
        )
    )


def _sharpened(model: torch.nn.Module) -> torch.nn.Module:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and "wpe" not in name:
                parameter.mul_(SHARP)
    return model
