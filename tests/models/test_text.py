"""What every encoder of texts must do, where vectors come from, and how rows are mixed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from veilgraph import registry
from veilgraph.errors import InputError, MissingExtraError, ReadError, UnknownNameError
from veilgraph.models import text
from veilgraph.models.text import cache, vectors
from veilgraph.models.text.rows import GATE, Described, new_rows, read

TEXTS = [
    "A drug used against fever and pain.",
    "A drug used against cough.",
    "The northern ward.",
    "",
    "fever",
    "A physician who works in the northern ward of the hospital.",
]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEILGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=registry.names("encoders"))
def encoder(request: pytest.FixtureRequest) -> text.TextEncoder:
    if request.param == "sentence":
        pytest.importorskip("sentence_transformers")
    return text.encoder(request.param)


def test_a_text_is_read_by_itself(encoder: text.TextEncoder) -> None:
    """Its features do not depend on the texts beside it (BatchNorm and its like would be no encoders here)."""
    state = encoder.fit(TEXTS)
    together = encoder.features(TEXTS, state)
    for number in (0, 3, 5):
        alone = encoder.features([TEXTS[number]], state)
        torch.testing.assert_close(alone[0].float(), together[number].float(), atol=2e-3, rtol=1e-3)
    assert torch.isfinite(together.float()).all()
    assert len(encoder.features([], state)) == 0 or encoder.of_sentences


def test_rows_can_be_learnt(encoder: text.TextEncoder) -> None:
    features, _, _ = read(encoder, TEXTS)
    weights = encoder.start(features, 8, 0, np.random.default_rng(0))
    leaves = {name: tensor.requires_grad_() for name, tensor in weights.items()}
    rows = encoder.rows(features, leaves)
    assert rows.shape == (len(TEXTS), 8)
    rows.square().sum().backward()
    assert all(leaf.grad is not None and leaf.grad.any() for leaf in leaves.values())


def test_a_new_text_gets_the_row_a_known_one_has(encoder: text.TextEncoder) -> None:
    features, center, state = read(encoder, TEXTS, 4)
    made = Described(encoder, features, torch.zeros(len(TEXTS)), "text")
    weights = made.start(center, state, 8, 0, np.random.default_rng(0))
    torch.testing.assert_close(
        new_rows(encoder, TEXTS, weights), made.every_row(weights), atol=2e-3, rtol=1e-2
    )


def test_similar_texts_are_nearer() -> None:
    rows = torch.nn.functional.normalize(text.encoder("pooled").features(TEXTS, {}), dim=1)
    assert rows[0] @ rows[1] > rows[0] @ rows[2]


def test_vectors_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = text.encoder("mean")
    first = cache.encoded(encoder, TEXTS)[0]
    monkeypatch.setattr(type(encoder), "features", lambda *_: pytest.fail("read again"))
    torch.testing.assert_close(cache.encoded(encoder, TEXTS)[0], first)
    (file,) = cache.cache_folder().iterdir()
    assert cache.cache_folder().stat().st_mode & 0o077 == 0, "texts may be told from vectors"
    monkeypatch.undo()
    monkeypatch.setenv("VEILGRAPH_CACHE", str(file.parents[1]))
    file.write_bytes(b"damaged")
    torch.testing.assert_close(cache.encoded(encoder, TEXTS)[0], first)
    assert not torch.equal(cache.encoded(encoder, [*TEXTS[1:], "other"])[0], first)


def test_word_vectors_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "glove.txt"
    file.write_text("3 2\nfever 1 0\ndrug 0 1\npain 1 1\n", encoding="utf-8")
    found = text.encoder("mean", str(file)).features(["Fever, drug!", "nothing known"], {})
    torch.testing.assert_close(found[0], torch.tensor([0.5**0.5, 0.5**0.5]))
    assert not found[1].any()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "fever 1 0\ndrug 0\n", "line 2 of .*expected 2 numbers"),
        ("e.txt", "fever 1 nan\n", "ordinary size"),
        ("f.txt", "fever\n", "a word and"),
        ("b.txt", "fever one two\n", "line 1 of .*a word and its numbers"),
        ("c.txt", "", "no word vector"),
        ("d.pt", "x", "is a pickle"),
    ],
)
def test_bad_vectors_say_what_is_wrong(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ReadError, match=said):
        text.encoder("mean", str(tmp_path / name)).features(["fever"], {})


def test_a_folder_of_pickled_weights_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(ReadError, match="pickles"):
        vectors.SentenceFolder(tmp_path)


def test_what_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="pooled"):
        text.encoder("poled")
    with pytest.raises(ReadError, match="no such vectors"):
        vectors.source(str(tmp_path / "absent"))
    with pytest.raises(InputError, match="not of sentences"):
        text.encoder("sentence", "wordllama").features(["fever"], {})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"veilgraph\[text\]"):
        vectors.WordLlama()


def test_an_unknown_entity_is_its_description() -> None:
    """gate · structure + (1 − gate) · description: the gate is 0 where nothing is known, and opens with what is."""
    encoder = text.encoder("mean")
    features, center, state = read(encoder, TEXTS)
    known = torch.tensor([0.0, 1, 50, 0, 3, 0])
    made = Described(encoder, features, known, "learnt")
    weights = made.start(center, state, 8, 0, np.random.default_rng(0))
    weights[GATE][-2] = 1.0
    gate = made.gate(slice(None), weights).squeeze(1)
    assert (gate[known == 0] == 0).all()
    assert gate[2] > gate[4] > gate[1] > 0
    described = made.described(slice(None), weights)
    rows = made.every_row(weights)
    torch.testing.assert_close(rows[known == 0], described[known == 0])
    wanted = gate[2] * weights["text.structure"][2] + (1 - gate[2]) * described[2]
    torch.testing.assert_close(rows[2], wanted)
