"""Muon: momentum whose update is orthogonalised, for the weight matrices."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5


def orthogonalise(update: Tensor) -> Tensor:
    """Newton-Schulz iteration on a batch of matrices `(N, rows, columns)`, in bfloat16."""
    a, b, c = _COEFFICIENTS
    x = update.bfloat16()
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.transpose(1, 2)
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.transpose(1, 2)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.transpose(1, 2) if tall else x


class Muon:
    """Updates matrices of equal shape together."""

    def __init__(
        self, parameters: list[nn.Parameter], lr: float, momentum: float = 0.95, decay: float = 0.0
    ) -> None:
        self.lr, self.momentum, self.decay = lr, momentum, decay
        self._groups: dict[tuple[int, ...], list[nn.Parameter]] = {}
        for parameter in parameters:
            self._groups.setdefault(tuple(parameter.shape), []).append(parameter)
        self._moments = {shape: [torch.zeros_like(p) for p in group] for shape, group in self._groups.items()}

    @torch.no_grad()
    def step(self, scale: float) -> None:
        """One update at `scale` times the learning rate."""
        rate = self.lr * scale
        for (rows, columns), group in self._groups.items():
            gradients = [parameter.grad for parameter in group]
            moments = self._moments[rows, columns]
            torch._foreach_lerp_(moments, gradients, 1 - self.momentum)
            ahead = [g.lerp(m, self.momentum) for g, m in zip(gradients, moments, strict=True)]
            updates = orthogonalise(torch.stack(ahead))
            size = rate * max(1.0, rows / columns) ** 0.5
            for parameter, update in zip(group, updates, strict=True):
                parameter.mul_(1 - rate * self.decay)
                parameter.add_(update.to(parameter.dtype), alpha=-size)
