"""autoencoder: an LSTM that was taught to repeat texts, and what it remembers of one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from veilgraph.models.text.encoders.base import TextEncoder, Weights
from veilgraph.models.text.vectors import source

TOKENS, WIDTH, BATCH, PASSES, RATE = 32, 256, 256, 4, 3e-3
FEWEST = 10  # steps


class Autoencoder(TextEncoder):
    """Taught on texts alone, before any statement is read: one LSTM reads token vectors, another says them again from what it kept."""

    name = "autoencoder"

    def fit(self, texts: Sequence[str]) -> dict[str, Tensor]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            tokens, mask = source(self.vectors).tokens(texts, TOKENS).padded(TOKENS)
            reader, writer = _Reader(tokens.shape[2]), _Writer(tokens.shape[2])
            both = [*reader.parameters(), *writer.parameters()]
            optimiser = torch.optim.Adam(both, lr=RATE)
            with torch.enable_grad():
                for _ in range(max(FEWEST, PASSES * len(tokens) // BATCH)):
                    chosen = torch.randint(len(tokens), (min(BATCH, len(tokens)),))
                    wanted, there = tokens[chosen].float(), mask[chosen].unsqueeze(2)
                    again = writer(reader(wanted, mask[chosen]), wanted)
                    loss = ((again - wanted).square() * there).sum() / there.sum().clamp(min=1)
                    optimiser.zero_grad()
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimiser.step()
        return {name: parameter.detach().clone() for name, parameter in reader.named_parameters()}

    def features(self, texts: Sequence[str], state: Weights) -> Tensor:
        tokens, mask = source(self.vectors).tokens(texts, TOKENS).padded(TOKENS)
        reader, out = _Reader(tokens.shape[2]), []
        with torch.no_grad():
            for start in range(0, len(tokens), BATCH):
                part = slice(start, start + BATCH)
                out.append(functional_call(reader, dict(state), (tokens[part].float(), mask[part])))
        found = torch.cat(out) if out else torch.zeros(0, WIDTH)
        return torch.nn.functional.normalize(found, dim=1)


class _Reader(nn.Module):
    """``[n, tokens, width]`` → ``[n, WIDTH]``: the mean of its states over the tokens that are there."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, WIDTH, batch_first=True)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        states = self.lstm(tokens)[0] * mask.unsqueeze(2)
        found: Tensor = states.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return found


class _Writer(nn.Module):
    """Says the tokens again from one vector, each after hearing the one before."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(width + WIDTH, WIDTH, batch_first=True), nn.Linear(WIDTH, width)

    def forward(self, memory: Tensor, tokens: Tensor) -> Tensor:
        before = nn.functional.pad(tokens, (0, 0, 1, 0))[:, :-1]
        heard = torch.cat([before, memory.unsqueeze(1).expand(-1, tokens.shape[1], -1)], 2)
        found: Tensor = self.out(self.lstm(heard)[0])
        return found
