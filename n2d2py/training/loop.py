"""Training loop: batches, losses, solvers, validation and checkpoints, in one process or several under torchrun."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from n2d2py import log
from n2d2py.contracts.ini.recipes import LayerRecipe, SolverSettings
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.targets.pixels import fit_labels
from n2d2py.training.batches import Source
from n2d2py.training.checkpoint import checkpoint_error, read_checkpoint, write_checkpoint, write_weights
from n2d2py.training.metrics import METRICS
from n2d2py.training.module import GraphModule
from n2d2py.training.rates import learning_rate

# PyTorch is an extra: pyright runs without it too, and then takes n2d2py/torch.py for it
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false


@dataclass(frozen=True)
class Goal:
    """Loss of one output.

    Attributes:
        tensor: graph tensor that the loss is computed from.
        loss: "cross entropy" of logits, "logistic" for one logit per output, "squares" for the squared distance to targets;
            "" for a layer that adds a margin to the correct output, whose consumers have the loss.
        high, low: with "squares", the target of the correct output and of the others.
        expected: function from labels to correct outputs, of the same shape; -1 for pixels that do not count.
        is_input: the target is the input itself.
    """

    tensor: str
    loss: str
    high: float
    low: float
    expected: Callable[[np.ndarray], np.ndarray]
    is_input: bool = False


@dataclass(frozen=True)
class Schedule:
    """Length, seed and device of a training.

    Attributes:
        stimuli: total number of samples to train on.
        batch: samples per step, over all processes.
        patience: epochs without a better validation score before training stops; 0: never.
        workers: processes that read and transform samples; 0: threads of this process.
        metric: validation metric, a name in METRICS.
    """

    stimuli: int
    batch: int
    seed: int = 1
    patience: int = 0
    device: str = "cpu"
    resume: bool = False
    workers: int = 0
    metric: str = "Sensitivity"


@dataclass
class Progress:
    """Progress of a training: the samples and batches learned, and the mean loss and the validation score of each epoch."""

    seen: int = 0
    batches: int = 0
    history: list[tuple[float, float]] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """Number of completed epochs."""
        return len(self.history)

    @property
    def best_epoch(self) -> int:
        """First epoch with the best validation score, counted from 1; 0 without a score."""
        scores = [score for _, score in self.history if not np.isnan(score)]
        return scores.index(max(scores)) + 1 if scores else 0


@dataclass(frozen=True)
class LearnSet:
    """Training samples; `of_epoch` returns those of an epoch, if they differ between epochs."""

    stimuli: Stimuli
    of_epoch: Callable[[int], Stimuli] | None = None

    def source(self, workers: int) -> Source:
        """Return the samples by position, read by so many processes."""
        return Source(self.stimuli, self.of_epoch, workers)


class _Solvers:
    """Optimizers of all parameters: one PyTorch optimizer for each solver type, with one group for each setting."""

    def __init__(self, module: GraphModule, recipes: Mapping[str, LayerRecipe]):
        groups: dict[SolverSettings, list[nn.Parameter]] = {}
        for name, entries in module.parameters_by_role().items():
            for role, parameter in entries:
                solver = recipes[name].solvers[role] if name in recipes else SolverSettings()
                groups.setdefault(solver, []).append(parameter)
        if not groups:
            remedy = "layers of an ONNX file learn with a section [<ONNX section>:<Type>_def] or one of their name"
            raise N2D2Error("E431", "no layer learns", where=module.graph.name, remedy=remedy)
        self.groups = groups
        self.names = {parameter: name for name, parameter in module.named_parameters()}
        self.optimizers: list[torch.optim.Optimizer] = []
        self.settings: list[list[SolverSettings]] = []
        for kind, make in (("SGD", partial(torch.optim.SGD, lr=0.01)), ("Adam", partial(torch.optim.Adam, lr=0.001))):
            chosen = [solver for solver in groups if solver.kind == kind]
            if chosen:
                self.optimizers.append(make([{"params": groups[solver], **_optimizer_options(solver)} for solver in chosen]))
                self.settings.append(chosen)

    def step(self, rate: Callable[[SolverSettings], float], batches: int = 0) -> None:
        """Update all parameters, each at the rate of its solver.

        `batches`: number of batches since training began. If given, only parameters whose IterationSize divides it are updated,
        by the mean of their gradients.
        """
        waiting = self._accumulated_gradients(batches)
        for optimizer, settings in zip(self.optimizers, self.settings, strict=True):
            for group, solver in zip(optimizer.param_groups, settings, strict=True):
                group["lr"] = rate(solver)
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            for solver, parameters in self.groups.items():
                if solver.clamping is not None and not batches % solver.iteration_size:
                    for parameter in parameters:
                        parameter.clamp_(*solver.clamping)
        for parameter, gradient in waiting.items():
            parameter.grad = gradient

    def _accumulated_gradients(self, batches: int) -> dict[nn.Parameter, Tensor | None]:
        """Take the gradients of parameters that wait for further batches, and average those of the others."""
        waiting: dict[nn.Parameter, Tensor | None] = {}
        for solver, parameters in self.groups.items():
            for parameter in parameters:
                if batches % solver.iteration_size:
                    waiting[parameter], parameter.grad = parameter.grad, None
                elif batches and solver.iteration_size > 1 and parameter.grad is not None:
                    parameter.grad /= solver.iteration_size
        return waiting

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the optimizer state for a checkpoint, as <parameter>/<slot>; zeros before the first step."""
        return {
            f"{self.names[parameter]}/{slot}": value.cpu().numpy()
            for optimizer, parameter, zeros in self._states()
            for slot, value in {**zeros, **optimizer.state[parameter]}.items()
            if slot in zeros
        } | {
            f"{self.names[parameter]}/waiting": (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
            .detach()
            .cpu()
            .numpy()
            for parameter in self._accumulating_parameters()
        }

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore the state that `arrays` returned."""
        for optimizer, parameter, zeros in self._states():
            stored = {slot: torch.from_numpy(arrays[f"{self.names[parameter]}/{slot}"]) for slot in zeros}
            optimizer.state[parameter] = {slot: value.to(zeros[slot].device) for slot, value in stored.items()}
        for parameter in self._accumulating_parameters():
            parameter.grad = torch.from_numpy(arrays[f"{self.names[parameter]}/waiting"]).to(parameter.device)

    def _accumulating_parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters that accumulate gradients over several batches, which may span epochs."""
        for solver, parameters in self.groups.items():
            yield from parameters if solver.iteration_size > 1 else ()

    def _states(self) -> Iterator[tuple[torch.optim.Optimizer, nn.Parameter, dict[str, Tensor]]]:
        """Yield (optimizer, parameter, its initial state) for all parameters."""
        for optimizer, settings in zip(self.optimizers, self.settings, strict=True):
            for group, solver in zip(optimizer.param_groups, settings, strict=True):
                for parameter in group["params"]:
                    zero = torch.zeros_like(parameter.detach())
                    if solver.kind == "Adam":
                        yield optimizer, parameter, {"step": torch.zeros(()), "exp_avg": zero, "exp_avg_sq": zero}
                    else:
                        yield optimizer, parameter, {"momentum_buffer": zero} if solver.momentum > 0 else {}


def _optimizer_options(solver: SolverSettings) -> dict[str, Any]:
    if solver.kind == "Adam":
        return {"lr": solver.learning_rate, "betas": (solver.beta1, solver.beta2), "eps": solver.epsilon}
    nesterov = not solver.polyak_momentum and solver.momentum > 0
    return {"lr": solver.learning_rate, "momentum": solver.momentum, "weight_decay": solver.decay, "nesterov": nesterov}


@contextmanager
def _processes(device: str) -> Iterator[tuple[int, int]]:
    """Yield (rank, number of processes) under torchrun; (0, 1) without it."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield 0, 1
        return
    distributed.init_process_group("gloo" if device == "cpu" else "nccl")
    try:
        yield distributed.get_rank(), distributed.get_world_size()
    finally:
        distributed.destroy_process_group()


def train(
    module: GraphModule,
    recipes: Mapping[str, LayerRecipe],
    goals: list[Goal],
    learn: LearnSet,
    validation: Stimuli | None,
    schedule: Schedule,
    folder: Path,
) -> Progress:
    """Train a module. Write `weights` (last epoch), `weights_validation` (best epoch) and a checkpoint into `folder`.

    Every process of torchrun calls this function; the first one writes. The same seed and kind of machine give the same
    weights.

    Raises:
        N2D2Error: E431 for settings that cannot be trained, E432 for a loss that is not finite, E433 for a wrong checkpoint.
    """
    with _processes(schedule.device) as (rank, count):
        module.to(schedule.device)
        solvers = _Solvers(module, recipes)
        checkpoint = folder / "training" / "checkpoint.npz"
        progress = _restore(checkpoint, module, solvers) if schedule.resume else Progress()
        _check_batches(module, min(schedule.batch, len(learn.stimuli)) // count)
        folder.mkdir(parents=True, exist_ok=True)
        wrapped: nn.Module = DistributedDataParallel(module) if count > 1 else module
        source, checked = learn.source(schedule.workers), None if validation is None else Source(validation)
        epochs = ceil(schedule.stimuli / len(learn.stimuli))
        while progress.seen < schedule.stimuli:
            loss = _epoch(wrapped, solvers, goals, source, schedule, progress, (rank, count))
            module.clamp_parameters()
            score = float("nan") if checked is None else _score(module, goals, checked, schedule)
            progress.history.append((loss, score))
            text = f"epoch {progress.epoch} of {epochs}: loss {loss:.4f}"
            log.notice("%s", text if checked is None else f"{text}, validation {_score_text(module, goals, score, schedule)}")
            if rank == 0:
                write_weights(folder / "weights", module.arrays())
                if progress.best_epoch == progress.epoch:
                    write_weights(folder / "weights_validation", module.arrays())
                write_checkpoint(checkpoint, _checkpoint_arrays(module, solvers, progress))
            if schedule.patience and checked is not None and progress.epoch - progress.best_epoch >= schedule.patience:
                log.notice("training ends after %d epochs without a better validation score", schedule.patience)
                break
        if count > 1:
            distributed.barrier()
    return progress


def _check_batches(module: GraphModule, batch: int) -> None:
    """Refuse batches with one value per channel for a batch normalization: its variance would be 0."""
    for node in module.graph.nodes:
        if batch < 2 and isinstance(node.op, BatchNorm) and prod(module.graph.shape(node.output)[2:]) == 1:
            what = f"'{node.name}' cannot be trained with a batch of one sample: it normalizes a single value per channel"
            remedy = "set BatchSize in [sp] to 2 or more for each process"
            raise N2D2Error("E431", what, where=node.location, remedy=remedy)


def _epoch(
    module: nn.Module,
    solvers: _Solvers,
    goals: list[Goal],
    source: Source,
    schedule: Schedule,
    progress: Progress,
    process: tuple[int, int],
) -> float:
    """Train for one epoch, or for the remaining samples of the schedule; return the mean loss. `process`: rank and number."""
    rank, count = process
    module.train()
    torch.manual_seed(schedule.seed + (progress.epoch << 32))  # a resumed training draws what an uninterrupted one draws
    order = np.random.Generator(np.random.PCG64([schedule.seed, progress.epoch])).permutation(len(source.stimuli))
    order = order[: schedule.stimuli - progress.seen]
    # every process takes as many of each batch: a part that does not divide is left out
    batches = [order[start : start + schedule.batch] for start in range(0, len(order), schedule.batch)]
    parts = [batch[: len(batch) // count * count][rank::count] for batch in batches if len(batch) >= count]
    single = [part for part in parts if len(part) > 1] or parts  # statistics of one stimulus are none
    bare = module.module if isinstance(module, DistributedDataParallel) else module
    total, steps = 0.0, 0
    read = source.batches(single, progress.epoch)
    for part in log.progress(single, "learning", total=len(single), unit="batch"):
        x, labels = next(read)
        inputs = x.to(schedule.device)
        loss = _total_loss(module, goals, inputs, labels)
        value = float(loss.detach())
        if not np.isfinite(value):
            what = f"the loss is {value} after {progress.seen} stimuli"
            raise N2D2Error("E432", what, remedy="use a smaller LearningRate, or add a warm-up (WarmUpDuration)")
        loss.backward()
        steps += 1
        total += value
        progress.seen += len(part) * count
        progress.batches += 1
        solvers.step(partial(_scheduled_rate, progress, schedule), progress.batches)
        bare.clamp_parameters()  # type: ignore[operator]
    progress.seen += len(order) - count * sum(len(part) for part in single)
    return total / max(steps, 1)


def _scheduled_rate(progress: Progress, schedule: Schedule, solver: SolverSettings) -> float:
    return learning_rate(solver, (progress.batches - 1) // solver.iteration_size, schedule.batch, schedule.stimuli)


def explore_rates(
    module: GraphModule, recipes: Mapping[str, LayerRecipe], goals: list[Goal], learn: LearnSet, schedule: Schedule
) -> list[tuple[float, float]]:
    """Return (rate, loss) of each step while one rate of all solvers rises exponentially from 1e-6 to 10, as with -find-lr of
    N2D2.

    Stops at a loss that is not finite.
    """
    module.to(schedule.device).train()
    torch.manual_seed(schedule.seed)
    solvers, source, size = _Solvers(module, recipes), learn.source(schedule.workers), len(learn.stimuli)
    _check_batches(module, min(schedule.batch, size))
    count, losses = max(schedule.stimuli // schedule.batch, 2), []
    for epoch in range(ceil(count * schedule.batch / size)):
        order = np.random.Generator(np.random.PCG64([schedule.seed, epoch])).permutation(size)
        parts = [order[start : start + schedule.batch] for start in range(0, len(order), schedule.batch)]
        for x, labels in source.batches([part for part in parts if len(part) > 1], epoch):
            rate = 1e-6 * 1e7 ** (len(losses) / (count - 1))
            inputs = x.to(schedule.device)
            loss = _total_loss(module, goals, inputs, labels)
            if not torch.isfinite(loss):
                return losses
            loss.backward()
            solvers.step(lambda _, rate=rate: rate)
            module.clamp_parameters()
            losses.append((rate, float(loss.detach())))
            if len(losses) == count:
                return losses
    return losses


def _total_loss(module: nn.Module, goals: list[Goal], inputs: Tensor, labels: np.ndarray) -> Tensor:
    right = {goal.tensor: torch.from_numpy(goal.expected(labels)).to(inputs.device) for goal in goals if not goal.loss}
    learned = [goal for goal in goals if goal.loss]
    outputs = module(inputs, tuple(goal.tensor for goal in learned), right)
    return torch.stack([_loss(goal, outputs[goal.tensor], labels, inputs) for goal in learned]).sum()


def _loss(goal: Goal, outputs: Tensor, labels: np.ndarray, inputs: Tensor) -> Tensor:
    """Return the mean loss over the samples of a batch."""
    if goal.is_input:
        return 0.5 * ((outputs.flatten(1) - inputs.flatten(1)) ** 2).sum(1).mean()
    outputs, known = _flatten_positions(outputs, goal.expected(labels))
    weights = torch.from_numpy(_position_weights(known)).to(outputs.device)
    right = torch.from_numpy(known.clip(0)).to(outputs.device)
    if goal.loss == "cross entropy":
        return (weights * functional.cross_entropy(outputs, right, reduction="none")).sum(1).mean()
    wanted = right[:, None] if outputs.shape[1] == 1 else functional.one_hot(right, outputs.shape[1]).movedim(2, 1)
    wanted = wanted.to(outputs.dtype)
    if goal.loss == "logistic":
        each = functional.binary_cross_entropy(outputs, wanted, reduction="none")
    else:
        each = 0.5 * (outputs - (goal.low + (goal.high - goal.low) * wanted)) ** 2
    return (weights * each.sum(1)).sum(1).mean()


def _flatten_positions(outputs: Tensor, expected: np.ndarray) -> tuple[Tensor, np.ndarray]:
    """Return outputs (n, C, P) and correct outputs (n, P): P = 1, or P = h * w for (n, C, h, w) and labels (n, H, W)."""
    if expected.ndim == 1:
        return outputs.flatten(1)[:, :, None], expected[:, None]
    height, width = outputs.shape[2:]
    return outputs.flatten(2), fit_labels(expected, (height, width), max(outputs.shape[1], 2)).reshape(len(expected), -1)


def _position_weights(expected: np.ndarray) -> np.ndarray:
    """Return loss weights (n, P). As in N2D2, the positions of a label in a sample together weigh as much as one sample."""
    result = np.zeros(expected.shape, np.float32)
    for labels, weights in zip(expected, result, strict=True):
        known = labels >= 0
        weights[known] = 1 / np.bincount(labels[known])[labels[known]]
    return result


@torch.no_grad()
def _score(module: GraphModule, goals: list[Goal], source: Source, schedule: Schedule) -> float:
    """Return the accuracy of the first goal, or minus its loss if it has no classes."""
    module.eval()
    goal, score, counted = goals[0], 0.0, 0
    positions = np.arange(len(source.stimuli))
    size = schedule.batch
    for x, labels in source.batches([positions[start : start + size] for start in range(0, len(positions), size)]):
        inputs = x.to(schedule.device)
        outputs = module(inputs, (goal.tensor,))[goal.tensor]
        if goal.is_input:
            score -= float(_loss(goal, outputs, labels, inputs)) * len(x)
            counted += len(x)
            continue
        outputs, right = _flatten_positions(outputs, goal.expected(labels))
        guess = outputs.argmax(1) if outputs.shape[1] > 1 else (outputs[:, 0] > 0.5).long()
        score += float((guess.cpu().numpy() == right).sum())
        counted += int((right >= 0).sum())
    return score / max(counted, 1)


def _score_text(module: GraphModule, goals: list[Goal], score: float, schedule: Schedule) -> str:
    if goals[0].is_input:
        return f"loss {-score:.4f}"
    classes = max(prod(module.graph.shape(goals[0].tensor)[1:]), 2)
    name = "" if schedule.metric == "Sensitivity" else f" ({schedule.metric})"
    return f"{100 * METRICS[schedule.metric](score, classes):.2f}%{name}"


def _checkpoint_arrays(module: GraphModule, solvers: _Solvers, progress: Progress) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint, by name."""
    layers = {f"module/{name}": tensor.cpu().numpy() for name, tensor in module.state_dict().items()}
    states = {f"solver/{name}": array for name, array in solvers.arrays().items()}
    history = np.array(progress.history, np.float64).reshape(-1, 2)
    return {**layers, **states, "progress/counts": np.array([progress.seen, progress.batches]), "progress/history": history}


def _restore(path: Path, module: GraphModule, solvers: _Solvers) -> Progress:
    """Check a whole checkpoint, then load it; return its progress."""
    arrays = read_checkpoint(path, _checkpoint_arrays(module, solvers, Progress()), grows="progress/history")
    history = [(loss, score) for loss, score in arrays["progress/history"].tolist()]
    stimuli, batches = map(int, arrays["progress/counts"])
    progress = Progress(stimuli, batches, history)
    if progress.seen < 1 or progress.batches < 1 or not progress.history:
        raise checkpoint_error(path, "is damaged: it has learned nothing")
    module.load_state_dict({name: torch.from_numpy(arrays[f"module/{name}"]) for name in module.state_dict()})
    solvers.load({name.removeprefix("solver/"): array for name, array in arrays.items() if name.startswith("solver/")})
    return progress
