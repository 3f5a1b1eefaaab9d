"""Flags made from config.py, so that every setting is declared once."""

from __future__ import annotations

import argparse
from typing import Any

from veilgraph.config import TrainConfig
from veilgraph.files import read_yaml


def add_settings(parser: argparse.ArgumentParser) -> None:
    """``--dimension 128`` and so on, plus ``--config FILE`` and ``--set key=value``."""
    group = parser.add_argument_group("settings", "what is not given is derived from the graph")
    for key, setting in TrainConfig.settings().items():
        default = TrainConfig.__dataclass_fields__[key].default
        usual = f" (default {default})" if default is not None else ""
        choices = f" One of: {', '.join(setting.choices)}." if setting.choices else ""
        group.add_argument(
            f"--{key.replace('_', '-')}",
            dest=f"setting_{key}",
            metavar=setting.kind.__name__.upper(),
            help=(setting.help + choices + usual).replace("%", "%%"),
            **({"nargs": "?", "const": "true"} if setting.kind is bool else {}),  # type: ignore[arg-type]
        )
    parser.add_argument("--config", metavar="FILE", help="YAML file of settings; flags win over it")


def chosen_settings(options: argparse.Namespace) -> dict[str, Any]:
    """What the user set, from file and flags."""
    values = read_yaml(options.config) if options.config else {}
    if isinstance(values.get("settings"), dict):  # a run's config.yaml
        from veilgraph.train.tuned import of_a_run

        values = of_a_run(values["settings"])
    given = vars(options)
    values.update(
        {
            k.removeprefix("setting_"): v
            for k, v in given.items()
            if k.startswith("setting_") and v is not None
        }
    )
    TrainConfig.of(values)
    return values


def byte_count(text: str) -> int:
    """A size such as 512M or 2G, in bytes."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    try:
        number = float(text.rstrip("KMGBkmgb"))
        unit = text.lstrip("0123456789.").rstrip("Bb").upper()
        return int(number * units[unit] if unit else number)
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"expected a size such as 512M or 2G, found {text!r}") from None
