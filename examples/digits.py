"""Two image classifiers on the handwritten digits that ship with scikit-learn (1,797 images, 8x8).

An ordinary PyTorch program: a convolutional network under autocast to bfloat16 and a small
vision transformer in float32, with DataLoader, AdamW, a learning-rate schedule, and a
checkpoint from which training resumes half-way. `--device` takes whatever PyTorch knows: cpu,
cuda, tpu ...

    python examples/digits.py --device cpu
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

BATCH = 64
EPOCHS = {"cnn": 15, "vit": 25}
LEARNING_RATE = {"cnn": 3e-3, "vit": 4e-3}


class ConvNet(nn.Module):
    """[N, 1, 8, 8] -> [N, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.1), nn.Linear(256, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x))


class Block(nn.Module):
    """One pre-norm transformer layer: [N, T, width] -> [N, T, width]."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(n, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(a.transpose(1, 2).reshape(n, tokens, width))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """[N, 1, 8, 8] -> [N, 10], over sixteen patches of 2x2."""

    def __init__(self, width: int = 64, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, stride=2)
        self.position = nn.Parameter(0.02 * torch.randn(1, 16, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x)).mean(dim=1))


MODELS = {"cnn": ConvNet, "vit": VisionTransformer}


@dataclass
class Run:
    """What one training run gave; accuracies in percent."""

    device: str
    model: str
    seed: int
    losses: list[float] = field(default_factory=list)  # the mean of each epoch
    accuracies: list[float] = field(default_factory=list)  # on the test images, after each epoch
    seconds: float = 0.0

    @property
    def accuracy(self) -> float:
        return self.accuracies[-1]


def load_data() -> tuple[TensorDataset, TensorDataset]:
    """The same 1,437 training and 360 test images every time, with values from 0 to 1."""
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    split = train_test_split(x, y, test_size=360, random_state=0, stratify=digits.target)
    return TensorDataset(split[0], split[2]), TensorDataset(split[1], split[3])


class Trainer:
    """Model, optimizer, schedule and data order: everything that a checkpoint holds."""

    def __init__(self, model: str, device: str, seed: int, epochs: int) -> None:
        torch.manual_seed(seed)  # parameters are drawn on the CPU: the same on every device
        self.device = torch.device(device)
        self.model = MODELS[model]().to(self.device)
        self.autocast = model == "cnn"
        train, test = load_data()
        self.order = torch.Generator().manual_seed(seed)
        self.train = DataLoader(train, BATCH, shuffle=True, drop_last=True, generator=self.order)
        self.test = DataLoader(test, batch_size=len(test))
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=LEARNING_RATE[model], weight_decay=0.05
        )
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            max_lr=LEARNING_RATE[model],
            total_steps=epochs * len(self.train),
            cycle_momentum=False,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.autocast):
            return self.model(x)

    def epoch(self, on_step: Callable[[], None], bar: tqdm) -> float:
        """Trains on every batch once; the mean loss."""
        self.model.train()
        total = torch.zeros((), device=self.device)
        for x, y in self.train:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.forward(x), y)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            total += loss.detach()
            bar.update()
            on_step()
        return total.item() / len(self.train)

    @torch.no_grad()
    def accuracy(self) -> float:
        """Percent of the test images that are recognised."""
        self.model.eval()
        right = count = 0
        for x, y in self.test:
            guess = self.forward(x.to(self.device)).argmax(dim=1)
            right += (guess == y.to(self.device)).sum().item()
            count += len(y)
        return 100 * right / count

    def state(self) -> dict:
        parts = ("model", "optimizer", "schedule")
        return {p: getattr(self, p).state_dict() for p in parts} | {"order": self.order.get_state()}

    def load(self, state: dict) -> None:
        for part in ("model", "optimizer", "schedule"):
            getattr(self, part).load_state_dict(state[part])
        self.order.set_state(state["order"].cpu())


def train(
    model: str,
    device: str,
    seed: int,
    out: Path,
    epochs: int | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> Run:
    """Trains one model, stopping half-way: the second half is done by a new trainer that starts
    from the checkpoint in `out`. Calls `on_step` after every training step."""
    epochs = epochs or EPOCHS[model]
    run = Run(device, model, seed)
    start = time.perf_counter()
    trainer = Trainer(model, device, seed, epochs)
    checkpoint = out / f"{model}-{device.replace(':', '-')}-{seed}.pt"
    steps = epochs * len(trainer.train)
    with tqdm(total=steps, desc=f"{model} on {device}, seed {seed}", disable=None) as bar:
        for epoch in range(epochs):
            if epoch == epochs // 2:
                torch.save(trainer.state(), checkpoint)
                trainer = Trainer(model, device, seed + 1000, epochs)
                trainer.load(torch.load(checkpoint, map_location=device))
            run.losses.append(trainer.epoch(on_step, bar))
            run.accuracies.append(trainer.accuracy())
            bar.set_postfix(loss=f"{run.losses[-1]:.3f}", test=f"{run.accuracies[-1]:.1f} %")
    run.seconds = time.perf_counter() - start
    return run


def plot(runs: list[Run], path: Path) -> None:
    """Loss and test accuracy by epoch: a colour for each device, a line for each seed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    models = sorted({r.model for r in runs})
    devices = sorted({r.device for r in runs})
    figure, axes = plt.subplots(2, len(models), figsize=(5.5 * len(models), 7), squeeze=False)
    for column, model in enumerate(models):
        for run in (r for r in runs if r.model == model):
            color = f"C{devices.index(run.device)}"
            label = run.device if run.seed == min(r.seed for r in runs) else None
            epochs = range(1, len(run.losses) + 1)
            axes[0][column].plot(epochs, run.losses, color=color, label=label, alpha=0.7)
            axes[1][column].plot(epochs, run.accuracies, color=color, label=label, alpha=0.7)
        axes[0][column].set(title=model, yscale="log", ylabel="training loss")
        axes[1][column].set(xlabel="epoch", ylabel="test accuracy, %", ylim=(80, 100.5))
        axes[1][column].axhline(97, color="grey", linewidth=0.8, linestyle=":")
        axes[0][column].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), default=sorted(MODELS))
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0")
    parser.add_argument("--epochs", type=int, help="instead of each model's own number")
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    runs = [
        train(model, args.device, seed, args.out, args.epochs)
        for model in args.models
        for seed in range(args.seeds)
    ]
    for r in runs:
        print(f"{r.model} on {r.device}, seed {r.seed}: {r.accuracy:.2f} % in {r.seconds:.1f} s")
    plot(runs, args.out / f"digits-{args.device.replace(':', '-')}.png")


if __name__ == "__main__":
    main()
