"""The types of the training parameters: each with its bound, its labels and its help. Imports no torch.

A parameter that several training types share is an alias here, so that a class with another default keeps the rest.
"""

from typing import Annotated, Literal

from pydantic import Field

from trainers.about import About, Group, PathKind

LARGEST = 10**9  # of a number of steps or rows

# A table, one parameter per paragraph.
# fmt: off
Epochs = Annotated[int, Field(ge=1, le=10_000), About(
    label="Epochs", label_zh="训练轮数", help="Passes over the data.", help_zh="遍历数据的次数。")]
BatchSize = Annotated[int, Field(ge=1, le=65_536), About(
    label="Batch size", label_zh="批大小", help="Rows (RL: prompts) in one micro-batch.",
    help_zh="每个微批的样本数（强化学习：提示数）。")]
LearningRate = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), About(
    label="Learning rate", label_zh="学习率", help="AdamW's peak learning rate.", help_zh="AdamW 的最大学习率。")]
DataPath = Annotated[str, Field(min_length=1), About(
    label="Data", label_zh="数据文件", help="JSONL file, relative to trainers/.", help_zh="JSONL 文件，相对于 trainers/。",
    path=PathKind.FILE)]
MaxSeqLen = Annotated[int, Field(ge=2, le=1_000_000), About(
    label="Maximum length", label_zh="最大长度",
    help="Longest row in tokens; what is longer is cut at its end.", help_zh="样本的最大词元数，超出部分从末尾截断。")]
PromptLen = Annotated[int, Field(ge=2, le=1_000_000), About(
    label="Maximum prompt", label_zh="最大提示长度",
    help="Longest prompt in tokens; rows with a longer one are skipped, or refused when strict.",
    help_zh="提示的最大词元数；超出的样本会被跳过，严格模式下则报错。")]
MaxGenLen = Annotated[int, Field(ge=1, le=1_000_000), About(
    label="Maximum generation", label_zh="最大生成长度", help="Longest completion in tokens.", help_zh="生成内容的最大词元数。")]
AnswerLen = Annotated[int, Field(ge=1, le=1_000_000), About(
    label="Maximum generation", label_zh="最大生成长度", help="Longest answer in an evaluation, in tokens.",
    help_zh="评测时生成内容的最大词元数。", expert=True)]
Strict = Annotated[bool, About(
    label="Strict data", label_zh="严格检查数据",
    help="1: stop at the first row that cannot be used; 0: skip such rows, count them and name the first.",
    help_zh="1：遇到第一条不可用的样本即停止；0：跳过、计数并报告前几条。", expert=True)]
MaxSteps = Annotated[int | None, Field(ge=1, le=LARGEST), About(
    label="Maximum steps", label_zh="最大步数", help="End after this many optimizer steps, even within an epoch.",
    help_zh="达到该优化步数即结束，即使一轮尚未完成。", expert=True)]
Seed = Annotated[int, Field(ge=0, le=2**31 - 1), About(
    label="Seed", label_zh="随机种子", help="Same seed, same result on the same machine.", help_zh="相同种子在同一机器上得到相同结果。",
    expert=True)]
EvalDataPath = Annotated[str | None, Field(min_length=1), About(
    label="Evaluation data", label_zh="评测数据",
    help="JSONL of held-out prompts with an answer; logged as eval/greedy_accuracy and eval/sampled_accuracy.",
    help_zh="带答案的留出提示 JSONL；记录为 eval/greedy_accuracy 和 eval/sampled_accuracy。", path=PathKind.FILE)]
EvalTextPath = Annotated[str | None, Field(min_length=1), About(
    label="Evaluation data", label_zh="评测数据", help="JSONL of held-out text; logged as eval/loss and eval/perplexity.",
    help_zh="留出文本 JSONL；记录为 eval/loss 和 eval/perplexity。", path=PathKind.FILE)]
EvalPairsPath = Annotated[str | None, Field(min_length=1), About(
    label="Evaluation data", label_zh="评测数据",
    help="JSONL of held-out preference pairs; logged as eval/accuracy and eval/margin.",
    help_zh="留出偏好对 JSONL；记录为 eval/accuracy 和 eval/margin。", path=PathKind.FILE)]
EvalInterval = Annotated[int, Field(ge=0, le=LARGEST), About(
    label="Evaluation interval", label_zh="评测间隔",
    help="Evaluate every this many steps; 0: only before the first step and after the last.",
    help_zh="每隔多少步评测一次；0 表示仅在开始前和结束后评测。")]
EvalSize = Annotated[int, Field(ge=1, le=LARGEST), About(
    label="Evaluation rows", label_zh="评测样本数", help="How many rows of the evaluation data are used, from the first.",
    help_zh="使用评测数据的前多少行。", expert=True)]
EvalTemperature = Annotated[float, Field(gt=0, le=10, allow_inf_nan=False), About(
    label="Evaluation temperature", label_zh="评测温度", help="Temperature of eval/sampled_accuracy.",
    help_zh="eval/sampled_accuracy 的采样温度。", expert=True)]
StopAt = Annotated[str | None, Field(pattern=r"^[A-Za-z_/0-9]+(>=|<=)[-+.0-9eE]+$"), About(
    label="Stop at", label_zh="提前结束条件",
    help="End early once an evaluation reaches this, such as eval/sampled_accuracy>=0.35.",
    help_zh="评测指标达到该值时提前结束，如 eval/sampled_accuracy>=0.35。", expert=True)]

AccumulationSteps = Annotated[int, Field(ge=1, le=65_536), About(
    label="Accumulation steps", label_zh="梯度累积步数", help="Micro-batches in one optimizer step.",
    help_zh="每个优化步包含的微批数。", group=Group.ALGORITHM)]
GradClip = Annotated[float, Field(gt=0, allow_inf_nan=False), About(
    label="Gradient clip", label_zh="梯度裁剪", help="Largest norm of the gradient.", help_zh="梯度范数的上限。",
    group=Group.ALGORITHM)]
WeightDecay = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), About(
    label="Weight decay", label_zh="权重衰减", help="AdamW's weight decay.", help_zh="AdamW 的权重衰减。",
    group=Group.ALGORITHM, expert=True)]
LrSchedule = Annotated[Literal["cosine", "constant"], About(
    label="Learning rate schedule", label_zh="学习率调度", help="cosine falls to a tenth over the run, as in the scripts.",
    help_zh="cosine 在训练中降至十分之一（与脚本一致）。", group=Group.ALGORITHM, expert=True)]
WarmupSteps = Annotated[int, Field(ge=0, le=LARGEST), About(
    label="Warm-up steps", label_zh="预热步数", help="Optimizer steps over which the learning rate rises from zero.",
    help_zh="学习率从零上升所用的优化步数。", group=Group.ALGORITHM, expert=True)]

Beta = Annotated[float, Field(ge=0, allow_inf_nan=False), About(
    label="Beta", label_zh="Beta（KL 系数）", help="Weight of the KL divergence to the reference policy; 0 leaves the reference out.",
    help_zh="与参考策略的 KL 散度的权重；0 表示不使用参考模型。", group=Group.ALGORITHM)]
DPOBeta = Annotated[float, Field(gt=0, allow_inf_nan=False), About(
    label="Beta", label_zh="Beta", help="How strongly the policy is held to the reference: larger stays closer.",
    help_zh="对参考模型的约束强度，越大越接近参考模型。", group=Group.ALGORITHM)]
NumGenerations = Annotated[int, Field(ge=2, le=1024), About(
    label="Generations", label_zh="每题生成数", help="Completions per prompt; they are compared with each other.",
    help_zh="每个提示的生成数，组内相互比较。", group=Group.ALGORITHM)]
Reasoning = Annotated[bool, About(
    label="Reasoning", label_zh="推理模式",
    help="1: start from reason weights and reward the <think> format; 0: start from full_sft weights.",
    help_zh="1：从 reason 权重开始并奖励 <think> 格式；0：从 full_sft 权重开始。", group=Group.ALGORITHM)]
RewardModelPath = Annotated[str, Field(min_length=1), About(
    label="Reward model", label_zh="奖励模型", help="Folder of the reward model; none: rule rewards only.",
    help_zh="奖励模型目录；none 表示仅使用规则奖励。", group=Group.ALGORITHM, path=PathKind.FOLDER)]
LossType = Annotated[Literal["grpo", "cispo"], About(
    label="Loss", label_zh="损失类型", help="grpo clips the ratio; cispo keeps every token's gradient with a capped weight.",
    help_zh="grpo 裁剪比率；cispo 以截断权重保留每个词元的梯度。", group=Group.ALGORITHM)]
Epsilon = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False), About(
    label="Epsilon", label_zh="Epsilon", help="GRPO: the ratio is clipped to 1 - epsilon .. 1 + epsilon.",
    help_zh="GRPO：比率裁剪到 1 - epsilon .. 1 + epsilon。", group=Group.ALGORITHM)]
EpsilonHigh = Annotated[float, Field(gt=0, allow_inf_nan=False), About(
    label="Epsilon high", label_zh="Epsilon 上限", help="CISPO: largest weight of a token.", help_zh="CISPO：词元权重的上限。",
    group=Group.ALGORITHM)]
NumIterations = Annotated[int, Field(ge=1, le=100), About(
    label="Updates per rollout", label_zh="每次采样的更新数",
    help="Optimizer steps taken on one rollout. At 1, GRPO and CISPO have the same gradient.",
    help_zh="每次采样后的优化步数。为 1 时 GRPO 与 CISPO 梯度相同。", group=Group.ALGORITHM, expert=True)]
ValueTracker = Annotated[Literal["global", "prompt"], About(
    label="Value tracker", label_zh="价值追踪器",
    help="global: one running value for all prompts, as the script; prompt: one per prompt, as the paper.",
    help_zh="global：所有提示共用一个估计（与脚本一致）；prompt：每个提示各有一个（与论文一致）。", group=Group.ALGORITHM)]
RhoMin = Annotated[float | None, Field(gt=0, lt=1, allow_inf_nan=False), About(
    label="Smallest memory", label_zh="最小记忆系数",
    help="Lower bound of what the tracker keeps at an update; empty: 0.5 for global, 0.875 for prompt.",
    help_zh="每次更新时追踪器保留比例的下限；留空：global 为 0.5，prompt 为 0.875。", group=Group.ALGORITHM, expert=True)]
RhoMax = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False), About(
    label="Largest memory", label_zh="最大记忆系数", help="Upper bound of what the tracker keeps at an update.",
    help_zh="每次更新时追踪器保留比例的上限。", group=Group.ALGORITHM, expert=True)]
KlHalf = Annotated[float, Field(gt=0, allow_inf_nan=False), About(
    label="Half-life drift", label_zh="半衰漂移", help="Drift of the policy in nats per token at which half of the memory is kept.",
    help_zh="策略漂移（每词元 nat）达到该值时保留一半记忆。", group=Group.ALGORITHM, expert=True)]
OfflineSamples = Annotated[int, Field(ge=0, le=1024), About(
    label="Offline samples", label_zh="离线采样数",
    help="Completions sampled per prompt before training for the first estimate of its value; for the prompt tracker.",
    help_zh="训练前为每个提示采样的生成数，用于价值初始估计；仅 prompt 追踪器使用。", group=Group.ALGORITHM, expert=True)]

CriticLearningRate = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), About(
    label="Critic learning rate", label_zh="评论家学习率", help="AdamW's peak learning rate for the critic.",
    help_zh="评论家 AdamW 的最大学习率。", group=Group.ALGORITHM)]
ClipEpsilon = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False), About(
    label="Clip epsilon", label_zh="裁剪 epsilon", help="The ratio is clipped to 1 - epsilon .. 1 + epsilon.",
    help_zh="比率裁剪到 1 - epsilon .. 1 + epsilon。", group=Group.ALGORITHM)]
VfCoef = Annotated[float, Field(ge=0, allow_inf_nan=False), About(
    label="Value loss weight", label_zh="价值损失权重", help="Weight of the critic's loss.", help_zh="评论家损失的权重。",
    group=Group.ALGORITHM)]
KlCoef = Annotated[float, Field(ge=0, allow_inf_nan=False), About(
    label="KL weight", label_zh="KL 系数", help="Weight of the KL divergence to the reference policy; 0 leaves the reference out.",
    help_zh="与参考策略的 KL 散度的权重；0 表示不使用参考模型。", group=Group.ALGORITHM)]
UpdateOldActorFreq = Annotated[int, Field(ge=1, le=LARGEST), About(
    label="Refresh interval", label_zh="旧策略更新间隔", help="Rollouts between two refreshes of the snapshot that samples.",
    help_zh="采样所用策略快照每隔多少次采样更新一次。", group=Group.ALGORITHM)]
Gamma = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), About(
    label="Gamma", label_zh="Gamma（折扣）", help="Discount of later rewards per token.", help_zh="后续奖励的每词元折扣。",
    group=Group.ALGORITHM)]
Lam = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), About(
    label="Lambda", label_zh="Lambda（GAE）", help="Of generalized advantage estimation: 0 trusts the critic, 1 the rewards.",
    help_zh="广义优势估计参数：0 依赖评论家，1 依赖奖励。", group=Group.ALGORITHM)]
CliprangeValue = Annotated[float, Field(gt=0, allow_inf_nan=False), About(
    label="Value clip", label_zh="价值裁剪范围", help="How far a value may move from its old one within one rollout.",
    help_zh="同一次采样内价值偏离旧值的最大幅度。", group=Group.ALGORITHM)]
PPOUpdateIters = Annotated[int, Field(ge=1, le=100), About(
    label="Passes per rollout", label_zh="每次采样的更新轮数", help="Passes over the completions of one rollout.",
    help_zh="对同一次采样数据的更新轮数。", group=Group.ALGORITHM)]
EarlyStopKl = Annotated[float, Field(gt=0, allow_inf_nan=False), About(
    label="Early stop KL", label_zh="提前停止 KL", help="The rest of a rollout's updates is skipped once the policy moved this far from it.",
    help_zh="策略偏离采样策略超过该值时跳过本次采样剩余的更新。", group=Group.ALGORITHM)]
MiniBatchSize = Annotated[int, Field(ge=1, le=65_536), About(
    label="Mini-batch size", label_zh="小批大小", help="Completions in one micro-batch of an update; a step takes accumulation_steps of them.",
    help_zh="每次更新的微批中的生成数；每个优化步使用 accumulation_steps 个微批。", group=Group.ALGORITHM)]

LoraName = Annotated[str, Field(pattern=r"^\w[\w.-]*$"), About(
    label="Adapter name", label_zh="LoRA 名称",
    help="Name of the published adapter. MiniMind's own loader takes only its square layers: use the merged weights there.",
    help_zh="发布的适配器名称。MiniMind 自带的加载器只读取其中的方阵层，请在那里使用合并后的权重。", group=Group.ALGORITHM)]
LoraRank = Annotated[int, Field(ge=1, le=4_096), About(
    label="Rank", label_zh="秩", help="Rank of each adapter.", help_zh="每个适配器的秩。", group=Group.ALGORITHM)]
LoraAlpha = Annotated[float, Field(gt=0, allow_inf_nan=False), About(
    label="Alpha", label_zh="Alpha", help="The adapter's output is scaled by alpha / rank.", help_zh="适配器输出按 alpha / rank 缩放。",
    group=Group.ALGORITHM)]

DistillationAlpha = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), About(
    label="Alpha", label_zh="Alpha（硬标签权重）", help="Weight of the labels; the teacher has the rest.",
    help_zh="硬标签损失的权重，其余为教师蒸馏损失。", group=Group.ALGORITHM)]
DistillationTemperature = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False), About(
    label="Temperature", label_zh="蒸馏温度", help="Softens the distributions of teacher and student alike.",
    help_zh="同时软化教师与学生的分布。", group=Group.ALGORITHM)]

Temperature = Annotated[float, Field(gt=0, le=10, allow_inf_nan=False), About(
    label="Temperature", label_zh="采样温度", help="Of sampling and of the log-probabilities alike.",
    help_zh="采样与对数概率使用同一温度。", group=Group.ALGORITHM)]
ThinkingRatio = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), About(
    label="Thinking ratio", label_zh="思考比例", help="Share of prompts that end with an opened <think>.",
    help_zh="以 <think> 开头的提示所占比例。", group=Group.ALGORITHM, expert=True)]
RewardWeights = Annotated[str | None, Field(min_length=1), About(
    label="Reward weights", label_zh="奖励权重",
    help="Weights of length, thinking, repetition, reward_model and answer, such as answer=1,length=0; unnamed ones are 1.",
    help_zh="length、thinking、repetition、reward_model、answer 的权重，如 answer=1,length=0；未写明的为 1。",
    group=Group.ALGORITHM)]

HiddenSize = Annotated[int, Field(ge=8, le=65_536), About(
    label="Hidden size", label_zh="隐藏维度", help="Width of the model.", help_zh="模型宽度。", group=Group.MODEL)]
NumHiddenLayers = Annotated[int, Field(ge=1, le=1_000), About(
    label="Layers", label_zh="层数", help="Transformer blocks.", help_zh="Transformer 块数。", group=Group.MODEL)]
UseMoe = Annotated[bool, About(
    label="Mixture of experts", label_zh="混合专家", help="1: Qwen3-MoE with 4 experts, one per token.",
    help_zh="1：Qwen3-MoE，4 个专家，每个词元使用 1 个。", group=Group.MODEL)]
NumAttentionHeads = Annotated[int, Field(ge=1, le=1_024), About(
    label="Attention heads", label_zh="注意力头数", help="Query heads; hidden size is a multiple of it.",
    help_zh="查询头数；隐藏维度须为其倍数。", group=Group.MODEL, expert=True)]
NumKeyValueHeads = Annotated[int, Field(ge=1, le=1_024), About(
    label="Key/value heads", label_zh="键值头数", help="A fresh model's key/value heads; weights bring their own.",
    help_zh="新模型的键值头数；已有权重以其自身为准。", group=Group.MODEL, expert=True)]
StudentHiddenSize = Annotated[int, Field(ge=8, le=65_536), About(
    label="Student's hidden size", label_zh="学生隐藏维度", help="Width of the student.", help_zh="学生模型宽度。", group=Group.MODEL)]
StudentNumLayers = Annotated[int, Field(ge=1, le=1_000), About(
    label="Student's layers", label_zh="学生层数", help="Transformer blocks of the student.", help_zh="学生的 Transformer 块数。",
    group=Group.MODEL)]
TeacherHiddenSize = Annotated[int, Field(ge=8, le=65_536), About(
    label="Teacher's hidden size", label_zh="教师隐藏维度", help="Width of the teacher.", help_zh="教师模型宽度。", group=Group.MODEL)]
TeacherNumLayers = Annotated[int, Field(ge=1, le=1_000), About(
    label="Teacher's layers", label_zh="教师层数", help="Transformer blocks of the teacher.", help_zh="教师的 Transformer 块数。",
    group=Group.MODEL)]
StudentUseMoe = Annotated[bool, About(
    label="Student has experts", label_zh="学生为混合专家", help="1: the student is a Qwen3-MoE with 4 experts, one per token.",
    help_zh="1：学生为 Qwen3-MoE，4 个专家，每个词元使用 1 个。", group=Group.MODEL)]
TeacherUseMoe = Annotated[bool, About(
    label="Teacher has experts", label_zh="教师为混合专家", help="1: the teacher is a mixture of experts.", help_zh="1：教师为混合专家模型。",
    group=Group.MODEL)]
FromStudentWeight = Annotated[str, Field(pattern=r"^[\w.-]+$"), About(
    label="Student's weight", label_zh="学生起始权重", help="Name of the weights in save_dir the student starts from; none: a fresh model.",
    help_zh="学生在 save_dir 中的起始权重名；none 表示全新模型。", group=Group.MODEL)]
FromTeacherWeight = Annotated[str, Field(pattern=r"^[\w.-]+$"), About(
    label="Teacher's weight", label_zh="教师权重", help="Name of the teacher's weights in save_dir.", help_zh="教师在 save_dir 中的权重名。",
    group=Group.MODEL)]
TeacherPath = Annotated[str | None, Field(min_length=1), About(
    label="Teacher's folder", label_zh="教师模型目录",
    help="Model folder in Hugging Face format, such as runs/12/model; overrides the teacher's weight and size.",
    help_zh="Hugging Face 格式的教师模型目录，如 runs/12/model；优先于教师权重名与尺寸。", group=Group.MODEL, path=PathKind.FOLDER)]
FromWeight = Annotated[str, Field(pattern=r"^[\w.-]+$"), About(
    label="From weight", label_zh="起始权重", help="Name of the weights in save_dir to start from; none: a fresh model.",
    help_zh="save_dir 中的起始权重名；none 表示全新模型。", group=Group.MODEL)]
InitPath = Annotated[str | None, Field(min_length=1), About(
    label="Start from folder", label_zh="起始模型目录", help="Model folder in Hugging Face format; overrides the script's own rule.",
    help_zh="Hugging Face 格式的模型目录，优先于脚本规则。", group=Group.MODEL, path=PathKind.FOLDER)]
TokenizerPath = Annotated[str | None, Field(min_length=1), About(
    label="Tokenizer", label_zh="分词器", help="Folder; empty: the weights' own, else ../dataset/tokenizer.",
    help_zh="目录；留空则用权重自带的，否则用 ../dataset/tokenizer。", group=Group.MODEL, expert=True, path=PathKind.FOLDER)]

SaveDir = Annotated[str, Field(min_length=1), About(
    label="Save folder", label_zh="保存目录", help="Where the weights are published at the end.", help_zh="结束时权重的发布目录。",
    group=Group.SAVE, path=PathKind.OUTPUT)]
SaveWeight = Annotated[str, Field(pattern=r"^\w[\w.-]*$"), About(
    label="Save as", label_zh="权重名称", help="Name of the published weights.", help_zh="发布权重的名称。", group=Group.SAVE)]
LogInterval = Annotated[int, Field(ge=1, le=LARGEST), About(
    label="Log interval", label_zh="日志间隔", help="Optimizer steps between two log lines.", help_zh="两行日志之间的优化步数。",
    group=Group.SAVE)]
SaveInterval = Annotated[int, Field(ge=1, le=LARGEST), About(
    label="Save interval", label_zh="保存间隔", help="Optimizer steps between two checkpoints.", help_zh="两个检查点之间的优化步数。",
    group=Group.SAVE)]
SampleInterval = Annotated[int, Field(ge=1, le=LARGEST), About(
    label="Sample interval", label_zh="样本记录间隔", help="Optimizer steps between two recorded sets of completions.",
    help_zh="两次记录生成样本之间的优化步数。", group=Group.SAVE, expert=True)]
FromResume = Annotated[bool, About(
    label="Resume", label_zh="续训", help="1: continue from the run folder's checkpoint if it has one.",
    help_zh="1：如运行目录中有检查点则继续训练。", group=Group.SAVE)]
TrainMonitor = Annotated[Literal["none", "wandb", "swanlab"], About(
    label="Monitor", label_zh="训练监控", help="Also report the metrics to this library, when it is installed.",
    help_zh="同时向该库上报指标（需已安装）。", group=Group.SAVE, expert=True)]
TrainProject = Annotated[str, Field(min_length=1), About(
    label="Monitor project", label_zh="监控项目名", help="Name of the project in the monitor.", help_zh="监控中的项目名称。",
    group=Group.SAVE, expert=True)]

Dtype = Annotated[Literal["bfloat16", "float16", "float32"], About(
    label="Precision", label_zh="精度", help="Autocast type on a GPU; the CPU always computes in float32.",
    help_zh="GPU 上的自动混合精度类型；CPU 始终使用 float32。", group=Group.HARDWARE)]
NumWorkers = Annotated[int, Field(ge=0, le=256), About(
    label="Data workers", label_zh="数据加载进程数", help="Processes that read data, at most one per core.",
    help_zh="读取数据的进程数，至多每核一个。", group=Group.HARDWARE, expert=True)]
UseCompile = Annotated[bool, About(
    label="Compile", label_zh="编译", help="1: torch.compile for the update.", help_zh="1：更新时使用 torch.compile。",
    group=Group.HARDWARE, expert=True)]
