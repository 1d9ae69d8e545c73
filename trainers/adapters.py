"""Low-rank adapters on a policy's linear layers and experts, by PEFT, and how they leave the run.

The adapted policy stays the model that it was; only its layers are wrapped. Its first output is the base's to the bit,
since every adapter begins with B = 0. Routers of experts, embeddings and the output head have no adapter.
"""

import warnings
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer, ParamWrapper
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from trainers.exports import replacing_folder
from trainers.weights import StateDict

ADAPTER = "default"  # PEFT's name of a model's only adapter


def add_adapters(policy: PreTrainedModel, *, rank: int, alpha: float) -> PeftModel:
    """Freeze ``policy`` and put an adapter on each of its linear layers and experts, in place.

    Returns:
        PEFT's view of ``policy``, which can save the adapters and merge them.

    Source: arXiv 2106.09685; without dropout, as in the scripts.
    """
    layers, experts = linear_layers(policy), fused_experts(policy)
    settings = LoraConfig(
        r=rank,
        lora_alpha=alpha,  # type: ignore[arg-type]  # PEFT only divides it
        lora_dropout=0.0,
        target_modules=layers,
        target_parameters=experts,
        fan_in_fan_out=any(isinstance(policy.get_submodule(name), Conv1D) for name in layers),
        task_type="CAUSAL_LM",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # PEFT asks transformers by a name that changes
        return get_peft_model(policy, settings)  # type: ignore[return-value]  # no mixed adapters here


def linear_layers(policy: PreTrainedModel) -> list[str]:
    """Return the names of the linear layers, those of GPT-2 included; the output head is none of them."""
    head: Any = policy.get_output_embeddings()
    kinds = (nn.Linear, Conv1D)
    return [name for name, module in policy.named_modules() if isinstance(module, kinds) and module is not head]


def fused_experts(policy: PreTrainedModel) -> list[str]:
    """Return the names of the weights that hold one matrix for each expert, [E, out, in]."""
    return [name for name, parameter in policy.named_parameters() if parameter.dim() == 3]


def trained_share(policy: PreTrainedModel) -> str:
    """Return how many of the parameters are trained, as a line of the log."""
    counts = [(parameter.numel(), parameter.requires_grad) for parameter in policy.parameters()]
    total, trained = sum(count for count, _ in counts), sum(count for count, trains in counts if trains)
    return f"trainable: {trained:,} of {total:,} parameters ({100 * trained / total:.1f} %)"


def save_adapter(adapted: PeftModel, folder: Path) -> None:
    """Write the adapters in PEFT's format; an existing folder is replaced only when complete."""
    with replacing_folder(folder) as temporary:
        adapted.save_pretrained(str(temporary), save_embedding_layers=False)  # looking for them would ask the hub
        (temporary / "README.md").unlink()  # a form that nobody filled in


@torch.no_grad()
def scripts_adapter(policy: PreTrainedModel) -> StateDict:
    """Return the adapters as the scripts keep them: ``<layer>.lora.A.weight`` [r, in], ``.lora.B.weight`` [out, r].

    The scripts add B A x as it is, so B is scaled by alpha / rank here; each expert has its own, as in their weights.
    Their loader looks at square layers alone and leaves the others out in silence.
    """
    state: StateDict = {}
    adapters: dict[str, Any] = {
        name: module for name, module in policy.named_modules() if isinstance(module, LoraLayer)
    }
    for name, module in adapters.items():
        down = module.lora_A[ADAPTER].weight  # [r, in], of all experts [E*r, in]
        up = module.lora_B[ADAPTER].weight * module.scaling[ADAPTER]  # [out, r], of all experts [out, r*E]
        if isinstance(module, ParamWrapper):
            downs = down.unflatten(0, (module.num_experts, -1))  # [E, r, in]
            ups = up.unflatten(1, (-1, module.num_experts)).permute(2, 0, 1)  # [E, out, r]
            experts = name.split(".base_layer")[0]
            state |= _of_experts(f"{experts}.{{}}.{module.parameter_name}.lora", downs, ups)
        else:
            state |= {f"{name}.lora.A.weight": down, f"{name}.lora.B.weight": up}
    return state


def _of_experts(name: str, downs: torch.Tensor, ups: torch.Tensor) -> StateDict:
    """Return one pair per expert; a fused gate and up projection share their A."""
    state: StateDict = {}
    for number, (down, up) in enumerate(zip(downs, ups, strict=True)):
        own = name.format(number)
        if "gate_up_proj" not in own:
            state |= {f"{own}.A.weight": down, f"{own}.B.weight": up}
            continue
        for part, rows in zip(("gate_proj", "up_proj"), up.chunk(2), strict=True):
            own_part = own.replace("gate_up_proj", part)
            state |= {f"{own_part}.A.weight": down, f"{own_part}.B.weight": rows}
    return state
