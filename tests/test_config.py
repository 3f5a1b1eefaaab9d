"""Settings: checked, explained, round-tripped."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilgraph.config import TrainConfig
from veilgraph.errors import ConfigError
from veilgraph.files import read_yaml


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dimensions": 3}, "Did you mean dimension"),
        ({"dimension": "many"}, "whole number"),
        ({"dimension": 0}, "at least 1"),
        ({"dimension": 2.5}, "whole number"),
        ({"loss": "sotmax"}, "Did you mean softmax"),
        ({"reciprocal": "perhaps"}, "true or false"),
        ({"learning_rate": "nan"}, "number"),
        ({"learning_rate": -1}, "at least 0"),
        ({"dropout": 1.0}, "at most 0.95"),
    ],
)
def test_bad_values_are_explained(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainConfig.of(values)


def test_words_become_values() -> None:
    config = TrainConfig.of({"dimension": "64", "reciprocal": "no", "learning_rate": "1e-2"})
    assert (config.dimension, config.reciprocal, config.learning_rate) == (64, False, 0.01)
    assert TrainConfig.of(config.as_dict()) == config


def test_every_setting_has_help_and_a_flag() -> None:
    import argparse

    from veilgraph.cli.flags import add_settings

    parser = argparse.ArgumentParser()
    add_settings(parser)
    shown = parser.format_help()
    for key, setting in TrainConfig.settings().items():
        assert setting.help.endswith(".")
        assert f"--{key.replace('_', '-')}" in shown


def test_yaml_files(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("model: rotate\n")
    assert read_yaml(path) == {"model": "rotate"}
    for text, message in (("- a\n", "key: value"), ("a: [", "not valid YAML")):
        path.write_text(text)
        with pytest.raises(ConfigError, match=message):
            read_yaml(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_yaml(tmp_path / "none.yaml")


def test_a_setting_nobody_chose_does_not_change_the_digest() -> None:
    """A version that knows more settings must still verify runs of this one."""
    import hashlib
    import json

    config = TrainConfig.of({"model": "transe", "epsilon": 1.0})
    chosen = {key: value for key, value in config.as_dict().items() if value is not None and key != "threads"}
    assert config.digest == hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()
    assert config.digest == config.with_values(threads=2).digest
    assert config.digest != config.with_values(noise_decay=0.5).digest
