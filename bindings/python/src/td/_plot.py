"""Models drawn with matplotlib."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._ktensor import KTensor

MOST_BARS = 30  # more of them in 2 inches are no longer told apart


def _draw(axes: Any, column: Any, names: Sequence[str] | None) -> None:
    if names is None and len(column) > MOST_BARS:
        axes.plot(range(len(column)), column, linewidth=1)
        axes.set_xlim(0, len(column) - 1)
    elif names is None or len(names) <= MOST_BARS:
        axes.bar(range(len(column)), column)
        if names is not None:
            axes.set_xticks(range(len(column)), names, rotation="vertical" if max(map(len, names)) > 2 else "horizontal")
    else:  # of many names the leading ones
        leading = sorted(range(len(column)), key=lambda i: -float(abs(column[i])))[:10]
        axes.bar(range(len(leading)), [column[i] for i in leading])
        axes.set_xticks(range(len(leading)), [names[i] for i in leading], rotation="vertical")
    axes.axhline(0, color="0.7", linewidth=0.5, zorder=0)


def plot_ktensor(model: KTensor, labels: Sequence[Sequence[str] | None], titles: Sequence[str],
                 components: Sequence[int] | None) -> Figure:
    """See `KTensor.plot`."""
    import matplotlib.pyplot as plt

    shown = range(model.rank) if components is None else components
    for what, given in (("labels", labels), ("titles", titles)):
        if len(given) != model.ndim:
            raise ValueError(f"{what} for {len(given)} modes: expected {model.ndim}")
    for m, n in enumerate(labels):
        if n is not None and len(n) != model.shape[m]:
            raise ValueError(f"{len(n)} labels of mode {m}: expected {model.shape[m]}")
    figure, axes = plt.subplots(len(shown), model.ndim, squeeze=False, sharey="col", layout="constrained",
                                figsize=(2.6 * model.ndim, 0.4 + 1.3 * len(shown)))
    for row, r in zip(axes, shown):
        for m, place in enumerate(row):
            _draw(place, model.factors[m][:, r], labels[m])
        row[0].set_ylabel(f"{model.weights[r]:.4g}")
    for m, place in enumerate(axes[0]):
        place.set_title(titles[m])
    return figure
