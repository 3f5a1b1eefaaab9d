"""Noisy clipped steps on examples that are independent of each other: what label and node share."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from veilgraph.account.calibrate import calibrate, steps_left
from veilgraph.account.events import Event, gaussian, nothing, repeated, sampled
from veilgraph.account.prices import Asked
from veilgraph.classify.config import ClassifyConfig
from veilgraph.classify.guarantees.base import CURATOR, Book
from veilgraph.classify.perceptron import Adam, Perceptron
from veilgraph.errors import InputError
from veilgraph.files import read_tensors, write_tensors
from veilgraph.noise.measure import Gauss
from veilgraph.noise.sample import PoissonSampler

COUNT_NOISE = 20.0  # of the number of labelled entities, which sets the expected batch
FEWEST = 10.0
BLOCK = 50  # steps paid for at a time
STATE = "state.safetensors"


def private_fit(rows: Tensor, truth: Tensor, config: ClassifyConfig, book: Book) -> Perceptron:
    """A perceptron learnt from these examples, one unit each.

    Reads confidential data: rows and truth, in batches drawn by independent coins, through clipped gradients with noise on every number.
    Releases: the matrices, and the noisy number of examples. Every block of steps is charged before it is taken; after a crash
    the steps that were paid for and lost are paid for again, as far as the budget goes.
    """
    count = _count(len(rows), book)
    noise = _multiplier(config, book)
    step: Event = sampled(config.sample_rate, gaussian(noise))
    found = Perceptron.new(rows.shape[1], truth.shape[1], between=0, several=config.several, seed=config.seed)
    if not torch.isfinite(rows).all():
        raise InputError("some features are no numbers: nothing can be learnt from them.")
    path, done = book.folder / CURATOR / STATE, 0
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        tensors, facts = read_tensors(path)
        book.check(facts, path)
        found.load(tensors)
        done = int(facts["steps"])
    sampler = PoissonSampler(torch.arange(len(rows)).numpy(), config.sample_rate)
    expected = config.sample_rate * count
    with torch.no_grad():
        optimiser = Adam(found.matrices, config.learning_rate)
        while done < config.steps:
            wanted = min(BLOCK, config.steps - done)
            allowed = steps_left(book.spent, step, config.epsilon or 0.0, config.delta, wanted)
            if not allowed:
                break
            book.meter.pay(repeated(allowed, step), f"{allowed} private steps")
            for _ in range(allowed):
                chosen, _, token = sampler.draw(book.meter.coins())
                drawn = torch.from_numpy(chosen)
                sums = found.gradients(rows[drawn], truth[drawn], config.clip)
                here = book.meter.measure(Asked(config.clip, noise), token=token)[0]
                optimiser.step([_noisy(g, here) / expected for g in sums])
            done += allowed
            write_tensors(path, found.tensors, {"steps": str(done), **book.mark})
    return found


def _noisy(exact: Tensor, noise: Gauss) -> Tensor:
    return (exact.double() + torch.from_numpy(noise.draw(*exact.shape))).float()


def _count(exact: int, book: Book) -> float:
    said = book.ledger.found("examples")
    if said is None:
        noisy = book.meter.release(
            np.array([exact]), Asked(1.0, COUNT_NOISE), "noisy number of labelled entities"
        )
        found = max(FEWEST, float(noisy[0]))
        book.ledger.charge(nothing(), "the number", examples=found)
        return found
    return float(said)


def _multiplier(config: ClassifyConfig, book: Book) -> float:
    """The noise that lets all steps fit, written down when it is found."""
    said = book.ledger.found("noise_multiplier")
    if said is not None:
        return float(said)
    before = book.spent

    def events_of(noise: float) -> list[Event]:
        return [*before, repeated(config.steps, sampled(config.sample_rate, gaussian(noise)))]

    noise = calibrate(events_of, config.epsilon or 0.0, config.delta)
    book.ledger.charge(nothing(), "the noise multiplier", noise_multiplier=noise)
    return noise
