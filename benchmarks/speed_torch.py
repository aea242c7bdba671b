"""The same rounds with torch in the plain way, beside altmas in one run: `python -m benchmarks.speed --torch`.

Torch is no dependency of altmas: install it where this is to be run (`pip install torch`). What torch does is how
people write it, and how the library baal does: a Sequential with dropout, Adam on minibatches of 64, and for the
posterior M forward passes with dropout on over each batch of the pool. It is trained in two ways:

as before   Adam at 0.001 all along, at most 2,000 steps: what altmas did in its first edition
alike       with the steps and the falling learning rate that altmas has now

Both end once the loss, averaged over the last twenty steps or so, is below 0.02, as altmas does. The pseudo-labels of a
round are those that altmas found, so that both train on as many examples; the information about 21 metrics, by which
altmas chooses, is left out on the side of torch. Rounds of both are timed in turn, so that other work disturbs both.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from altmas.methods import AltMas, Bald, Task
from altmas.methods.paper.augmentation import oversampled, split
from altmas.methods.paper.posterior import Posterior
from altmas.methods.paper.rounds import pseudo_labels
from altmas.methods.paper.surrogates.minibatches import Training
from altmas.metrics import metric_set
from altmas.pool.features import Features
from altmas.types import Array
from benchmarks.speed import CLASSES, LABELS, Line, labelled, made_up_pool

POINTS, REPEATS, POOL_BATCH, HIDDEN = 10_000, 5, 256, 256
BEFORE, ALIKE = "torch, as before", "torch, alike"
TRAININGS = {BEFORE: Training(learning_rate=1e-3, max_steps=2000), ALIKE: Training()}


def torch_lines() -> list[Line]:
    """Processor seconds of each round and of the posterior pass, and how many times as long torch takes."""
    import torch

    pool, truth = made_up_pool(POINTS)
    task = Task(pool, metric_set(["paper"], pool))
    features = torch.from_numpy(np.ascontiguousarray(Features.of(pool)[slice(0, POINTS)]))
    answers, seeds = torch.from_numpy(pool.predictions), iter(range(1, 1000))
    paper, bald = AltMas(preset="paper"), Bald()
    settings = paper.settings

    def of_torch(training: Training, *, augmented: bool) -> Callable[[], None]:
        history = labelled(truth, LABELS, 0)
        rows, codes = torch.from_numpy(history.labelled), torch.from_numpy(history.codes)
        agree = history.codes == pool.predictions[history.labelled]
        learned, _ = split(agree, np.random.default_rng(0))
        examples = learned[oversampled(agree[learned], np.random.default_rng(0))]
        lent = pseudo_labels(task, history, settings, settings.make(), np.random.default_rng(0)).rows

        def whole_round() -> None:
            torch.manual_seed(next(seeds))
            x, y = features[rows], codes
            if augmented:
                agreeing = trained(x[examples], torch.from_numpy(agree[examples].astype(np.int64)), 2, training)
                agreeing.eval()
                with torch.no_grad():
                    torch.cat([agreeing(part).softmax(1) for part in features.split(POOL_BATCH)])
                x, y = torch.cat([x, features[lent]]), torch.cat([y, answers[lent]])
            information(posterior(trained(x, y, CLASSES, training), features, paper.draws))

        return whole_round

    def of_altmas(method: AltMas | Bald) -> Callable[[], Any]:
        return lambda: method.propose(task, labelled(truth, LABELS, next(seeds)), 1)

    history = labelled(truth, LABELS, 0)
    known, own = history.known, Features.of(pool)
    fitted = settings.make().fit(own.subset(history.labelled), history.codes, CLASSES, np.random.default_rng(0))
    draws = fitted.draws(paper.draws, np.random.default_rng(0))
    network = trained(features[history.labelled], torch.from_numpy(history.codes), CLASSES, TRAININGS[ALIKE])

    def pass_of_altmas() -> None:
        for _ in Posterior(lambda chunk: draws(own[chunk]), known, draws.count, CLASSES, keep=0):
            pass

    work: dict[str, dict[str, Callable[[], Any]]] = {
        "posterior pass": {"altmas": pass_of_altmas, "torch": lambda: posterior(network, features, paper.draws)},
        "BALD round": {"altmas": of_altmas(bald)}
        | {name: of_torch(training, augmented=False) for name, training in TRAININGS.items()},
        "ALT-MAS round": {"altmas": of_altmas(paper)}
        | {name: of_torch(training, augmented=True) for name, training in TRAININGS.items()},
    }
    return [line for what, sides in work.items() for line in compared(what, sides)]


def compared(what: str, sides: dict[str, Callable[[], Any]]) -> Iterator[Line]:
    """The median of each side's rounds, timed in turn after one that does not count, and the ratios to the first."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for repeat in range(REPEATS + 1):
        for name, work in sides.items():
            start = time.perf_counter(), time.process_time()
            work()
            if repeat:
                spent[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    middle = {name: [statistics.median(kind) for kind in zip(*times, strict=True)] for name, times in spent.items()}
    own = next(iter(middle.values()))
    for name, (clock, processors) in middle.items():
        yield f"seconds, {what}, {name}", str(POINTS), clock, None
        yield f"processor seconds, {what}, {name}", str(POINTS), processors, None
        if name != "altmas":
            yield f"processor seconds, {what}, {name} / altmas", str(POINTS), processors / own[1], None
            yield f"seconds, {what}, {name} / altmas", str(POINTS), clock / own[0], None


def trained(x: Any, y: Any, n_classes: int, training: Training) -> Any:
    """A network with dropout, trained on (x, y)."""
    import torch
    from torch import nn

    network = nn.Sequential(
        *(nn.Linear(x.shape[1], HIDDEN), nn.ReLU(), nn.Dropout(0.3)),
        *(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Dropout(0.3)),
        nn.Linear(HIDDEN, n_classes),
    )
    optimiser = torch.optim.Adam(network.parameters(), training.learning_rate, weight_decay=training.weight_decay)
    steps, loss_of = training.steps(len(x)), nn.CrossEntropyLoss()
    falling = training == TRAININGS[ALIKE]
    step, recent = 0, float("nan")
    while step < steps and not recent < training.enough:
        for rows in torch.randperm(len(x)).split(training.batch):
            if step == steps or recent < training.enough:
                break
            if falling:
                optimiser.param_groups[0]["lr"] = training.learning_rate * (1 - step / steps)
            optimiser.zero_grad()
            loss = loss_of(network(x[rows]), y[rows])
            loss.backward()
            optimiser.step()
            recent = loss.item() if recent != recent else 0.95 * recent + 0.05 * loss.item()
            step += 1
    return network


def posterior(network: Any, features: Any, draws: int) -> Array:
    """(M, N, C) float32: every batch of the pool, M times with fresh dropout."""
    import torch

    network.train()
    parts = []
    with torch.no_grad():
        for batch in features.split(POOL_BATCH):
            repeated = batch.repeat(draws, 1)
            parts.append(network(repeated).softmax(1).view(draws, len(batch), -1))
    return np.asarray(torch.cat(parts, 1).numpy())


def information(probs: Array) -> Array:
    """(N,) BALD's mutual information of (M, N, C) probabilities."""
    mean = probs.mean(0)
    within = -(probs * np.log(np.maximum(probs, 1e-12))).sum(2).mean(0)
    return np.asarray(-(mean * np.log(np.maximum(mean, 1e-12))).sum(1) - within)
