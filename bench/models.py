"""Models that the benchmarks run, in plain PyTorch: each is made by `build(name, device)` with a
batch and a loss. What it is not: a model zoo; sizes are chosen to run on two cores.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    """The basic block of ResNet-18 (He et al., arXiv:1512.03385)."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.skip = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.skip(x))


class Bottleneck(nn.Module):
    """The block of ResNet-50."""

    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.skip = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.skip(x))


def resnet(block: type, depths: list[int], expansion: int, classes: int = 10) -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    ]  # fmt: skip
    inputs = 64
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for i in range(depth):
            layers.append(block(inputs, width, 2 if stage and not i else 1))
            inputs = width * expansion
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Spelt out: Google's torch_tpu runs scaled_dot_product_attention on a chip only."""
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if causal:
        n = q.shape[-2]
        mask = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(mask, float("-inf"))
    return scores.softmax(dim=-1) @ v


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, n, c = x.shape
        qkv = self.qkv(x).view(b, n, 3, self.heads, c // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = attention(q, k, v, self.causal)
        return self.out(y.transpose(1, 2).reshape(b, n, c))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """A causal transformer with learnt positions and tied weights."""

    def __init__(self, vocabulary: int = 512, width: int = 256, depth: int = 4, length: int = 64):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)
        self.layers = nn.Sequential(*(Layer(width, 4, True) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        at = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.layers(self.tokens(tokens) + self.positions(at))))


class ViT(nn.Module):
    def __init__(self, size: int = 64, patch: int = 8, width: int = 192, depth: int = 6):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.positions = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2, width))
        self.layers = nn.Sequential(*(Layer(width, 3, False) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.layers(x)).mean(dim=1))


class Recurrent(nn.Module):
    def __init__(self, width: int = 128):
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, width, 2, batch_first=True), nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def _mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )


# Name: module, the shape of its input (None: tokens).
MODELS = {
    "mlp": (_mlp, (64, 256)),
    "resnet18": (lambda: resnet(Residual, [2, 2, 2, 2], 1), (8, 3, 64, 64)),
    "resnet50": (lambda: resnet(Bottleneck, [3, 4, 6, 3], 4), (4, 3, 64, 64)),
    "gpt": (GPT, None),
    "vit": (ViT, (8, 3, 64, 64)),
    "lstm": (Recurrent, (16, 32, 32)),
}


def small_mlp(device: str, wrap: Callable[[nn.Module], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return wrap(net.requires_grad_(False).to(device))


class Bench:
    """A model with its data on a device: `forward()` or one training `step()`. `wrap`: makes of the
    model what is called (torch.compile)."""

    def __init__(
        self,
        name: str,
        device: str,
        wrap: Callable[[nn.Module], nn.Module] = lambda model: model,
        training: bool = True,
    ):
        make, shape = MODELS[name]
        torch.manual_seed(0)
        model = make()
        if shape is None:
            self.inputs = torch.randint(512, (4, 64))
            self.targets = torch.randint(512, (4, 64)).to(device)
        else:
            self.inputs = torch.randn(shape)
            self.targets = torch.randint(10, (shape[0],)).to(device)
        self.inputs = self.inputs.to(device)
        model = model.to(device).train(training)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.model = wrap(model)

    def forward(self) -> torch.Tensor:
        with torch.no_grad():
            return self.model(self.inputs)

    def step(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        logits = self.model(self.inputs)
        loss = F.cross_entropy(logits.flatten(0, -2), self.targets.flatten())
        loss.backward()
        self.optimizer.step()
        return loss.detach()
