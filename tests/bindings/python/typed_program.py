"""A program that a checker of types accepts."""
from __future__ import annotations

import numpy as np

import td


def best(x: td.Tensor, seeds: int) -> td.KTensor:
    models = [td.cpals(x, rank=3, seed=seed, progress=False) for seed in range(seeds)]
    return max(models, key=lambda m: m.fit(x).fit)


model: td.KTensor = best(td.tensor(np.ones((4, 3, 2))), 2)
shape: tuple[int, ...] = model.shape
score, match = model.score(model)
text: str = str(td.plan(shape, 3, nnz=10))
norm: float = model.norm() + score
blocks: td.DistributedKTensor = td.cpals(np.ones((4, 3, 2)), 1, model="distributed")
whole: td.KTensor = blocks.gather()
