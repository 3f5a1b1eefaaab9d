"""What charged tuning costs: noise of one Gaussian release when it is the best of a random number, over that of a single one."""

from __future__ import annotations

import sys
from typing import Any

from common import arguments, finish, say, settings
from veilgraph.account.calibrate import calibrate
from veilgraph.account.events import gaussian, selected

MEANS, EPSILONS, DELTA = (2, 5, 10, 30), (1.0, 2.0, 8.0), 1e-6


def main(argv: list[str]) -> dict[str, Any]:
    """rows: mean, epsilon, noise, single, ratio."""
    arguments(__doc__).parse_args(argv)
    rows = []
    for epsilon in EPSILONS:
        single = calibrate(lambda noise: [gaussian(noise)], epsilon, DELTA)
        for mean in MEANS:
            noise = calibrate(lambda noise, mean=mean: [selected(mean, gaussian(noise))], epsilon, DELTA)  # type: ignore[misc]
            rows.append(
                {"mean": mean, "epsilon": epsilon, "noise": noise, "single": single, "ratio": noise / single}
            )
            say(f"ε = {epsilon:g}, {mean} trials in the mean: {noise / single:.2f} × the noise")
    return finish({"rows": rows, "settings": settings(delta=DELTA)})


if __name__ == "__main__":
    main(sys.argv[1:])
