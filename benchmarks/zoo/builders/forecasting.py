"""A small temporal fusion transformer: variable selection, an LSTM each way in time, attention that can be read."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Gated(nn.Module):
    """Gated residual network: how much of a transformed input is added decides the input itself."""

    def __init__(self, i: int, hidden: int, o: int, context: int = 0):
        super().__init__()
        self.one, self.two, self.gate = nn.Linear(i, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 2 * o)
        self.around = nn.Linear(i, o) if i != o else nn.Identity()
        self.context = nn.Linear(context, hidden, bias=False) if context else None
        self.norm = nn.LayerNorm(o)

    def forward(self, x: torch.Tensor, context: torch.Tensor | None = None) -> torch.Tensor:
        y = self.one(x)
        if self.context is not None:
            y = y + self.context(context)
        return self.norm(self.around(x) + functional.glu(self.gate(self.two(functional.elu(y))), -1))


class Selection(nn.Module):
    """Weighs variables against each other, with a network for each."""

    def __init__(self, variables: int, width: int):
        super().__init__()
        self.lift = nn.ModuleList(nn.Linear(1, width) for _ in range(variables))
        self.each = nn.ModuleList(Gated(width, width, width) for _ in range(variables))
        self.weights = Gated(variables * width, width, variables, width)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        lifted = [lift(x[..., k:k + 1]) for k, lift in enumerate(self.lift)]
        weights = torch.softmax(self.weights(torch.cat(lifted, -1), context), -1).unsqueeze(-2)
        chosen = torch.stack([each(y) for each, y in zip(self.each, lifted, strict=True)], -1)
        return (chosen * weights).sum(-1)


class FusionTransformer(nn.Module):
    """Quantiles of the next steps from what was seen, what is known ahead, and what does not change."""

    def __init__(self, seen: int = 6, known: int = 3, still: int = 4, width: int = 64, heads: int = 4,
                 quantiles: int = 3):
        super().__init__()
        self.still = Gated(still, width, width)
        self.seen, self.known = Selection(seen, width), Selection(known, width)
        self.past, self.future = nn.LSTM(width, width, batch_first=True), nn.LSTM(width, width, batch_first=True)
        self.states = nn.ModuleList(Gated(width, width, width) for _ in range(2))
        self.local, self.local_norm = nn.Linear(width, 2 * width), nn.LayerNorm(width)
        self.enriched = Gated(width, width, width, width)
        self.queries, self.keys = nn.Linear(width, width), nn.Linear(width, width)
        self.values = nn.Linear(width, width // heads)
        self.attended, self.attended_norm = nn.Linear(width // heads, 2 * width), nn.LayerNorm(width)
        self.last, self.quantiles = Gated(width, width, width), nn.Linear(width, quantiles)
        self.heads = heads

    def attention(self, x: torch.Tensor, ahead: int) -> torch.Tensor:
        """Heads share their values; a step sees what lies before it."""
        batch, steps, width = x.shape
        queries, keys = (layer(x).view(batch, steps, self.heads, -1).transpose(1, 2)
                         for layer in (self.queries, self.keys))
        scores = queries @ keys.transpose(-2, -1) / (width // self.heads) ** 0.5
        unseen = torch.triu(torch.ones(steps, steps, dtype=torch.bool), 1)
        weights = torch.softmax(scores.masked_fill(unseen, float("-inf")), -1).mean(1)
        return (weights @ self.values(x))[:, -ahead:]

    def forward(self, seen: torch.Tensor, known: torch.Tensor, still: torch.Tensor) -> torch.Tensor:
        ahead = known.shape[1]
        context = self.still(still)
        past, future = self.seen(seen, context.unsqueeze(1)), self.known(known, context.unsqueeze(1))
        before, state = self.past(past, tuple(s(context).unsqueeze(0) for s in self.states))
        after, _ = self.future(future, state)
        steps = torch.cat((before, after), 1)
        steps = self.local_norm(functional.glu(self.local(steps), -1) + torch.cat((past, future), 1))
        steps = self.enriched(steps, context.unsqueeze(1))
        found = functional.glu(self.attended(self.attention(steps, ahead)), -1)
        return self.quantiles(self.last(self.attended_norm(found + steps[:, -ahead:])))


def fusion_transformer() -> nn.Module:
    """TFT-like."""
    return FusionTransformer()
