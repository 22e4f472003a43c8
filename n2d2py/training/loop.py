"""Training loop: batches, losses, solvers, validation and checkpoints, in one process or several under torchrun."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.contracts.ini.recipes import LayerRecipe, SolverSettings
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.targets.pixels import fit_labels
from n2d2py.training.checkpoint import checkpoint_error, read_checkpoint, write_checkpoint, write_weights
from n2d2py.training.metrics import METRICS
from n2d2py.training.module import GraphModule
from n2d2py.training.rates import learning_rate

# PyTorch is an extra: pyright runs without it too, and then takes n2d2py/torch.py for it
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false


_CACHE_BYTES = 1 << 30
"""Samples up to this size are read once and cached."""


@dataclass(frozen=True)
class Source:
    """Samples by position; cached if they fit into memory and do not differ between epochs.

    `epoch_stimuli`: the samples of an epoch, if they differ. `workers`: processes that read them; 0: threads of this process.
    """

    stimuli: Stimuli
    epoch_stimuli: Callable[[int], Stimuli] | None = None
    workers: int = 0

    @cached_property
    def _held(self) -> tuple[np.ndarray, np.ndarray] | None:
        stimuli = self.stimuli
        if self.epoch_stimuli is not None or len(stimuli) * int(np.prod(stimuli.shape)) * 4 > _CACHE_BYTES:
            return None
        x = np.concatenate([x for x, _, _ in stimuli.watched_batches(256, "reading")])
        return x, _labels(stimuli, np.arange(len(stimuli)))

    def batches(self, parts: Sequence[np.ndarray], epoch: int = 0) -> Iterator[tuple[Tensor, np.ndarray]]:
        """Yield (x float32 (n, *shape), labels (n,), or (n, H, W) of pixels) at the positions of each part, for an epoch.

        All parts but the last have equal size. The next batches are read while one is trained on. Raises E434 if a process dies.
        """
        if self._held is not None:
            samples, labels = self._held
            return ((torch.from_numpy(samples[part]), labels[part]) for part in parts)
        stimuli = self.stimuli if self.epoch_stimuli is None else self.epoch_stimuli(epoch)
        if self.workers and parts:
            return _read_by_processes(stimuli, parts, self.workers)
        return ordered_map(partial(_read, stimuli), parts)


def _labels(stimuli: Stimuli, positions: np.ndarray) -> np.ndarray:
    """Return the labels at positions: ids (n,), or (n, H, W) if each pixel has one."""
    if stimuli.label_map is None:
        return stimuli.labels[positions]
    return np.stack([stimuli.label_map(int(position)).astype(np.int32) for position in positions])


def _read(stimuli: Stimuli, positions: np.ndarray) -> tuple[Tensor, np.ndarray]:
    return torch.from_numpy(np.stack([stimuli[position] for position in positions])), _labels(stimuli, positions)


class _Batches(Dataset):
    """Dataset of whole batches with labels. An error with a code is an item too, since PyTorch does not pass it on intact."""

    def __init__(self, stimuli: Stimuli):
        self._stimuli = stimuli

    def __getitems__(self, positions: list[int]) -> tuple[Tensor, Tensor] | N2D2Error:
        try:
            x, labels = _read(self._stimuli, np.array(positions))
            return x, torch.from_numpy(labels)
        except N2D2Error as error:
            return error


def _read_by_processes(stimuli: Stimuli, parts: Sequence[np.ndarray], workers: int) -> Iterator[tuple[Tensor, np.ndarray]]:
    # forked: what reads a stimulus is a chain of functions that no other process could be sent
    loader: Any = DataLoader(
        _Batches(stimuli),
        batch_sampler=[part.tolist() for part in parts],
        num_workers=workers,
        collate_fn=lambda batch: batch,
        multiprocessing_context="fork",
    )
    batches = iter(loader)
    for _ in parts:
        try:
            batch = next(batches)
        except RuntimeError as error:
            what = f"a worker process that reads stimuli died: {str(error).splitlines()[0]}"
            raise N2D2Error("E434", what, remedy="give a smaller -learn-workers, or 0") from None
        if isinstance(batch, N2D2Error):
            raise batch
        yield batch[0], batch[1].numpy()


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

    `stimuli`: total number of samples to train on. `batch`: samples per step, over all processes. `patience`: epochs without
    a better validation score before training stops; 0: never. `metric`: validation metric, a name in METRICS.
    """

    stimuli: int
    batch: int
    seed: int = 1
    patience: int = 0
    device: str = "cpu"
    resume: bool = False
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


class _Solvers:
    """The optimizers of all parameters: one of PyTorch for each setting, with the parameters by name."""

    def __init__(self, module: GraphModule, recipes: Mapping[str, LayerRecipe]):
        names = {parameter: name for name, parameter in module.named_parameters()}
        groups: dict[SolverSettings, dict[str, nn.Parameter]] = {}
        for layer, role, parameter in module.parameters_by_role():
            solver = recipes[layer].solvers[role] if layer in recipes else SolverSettings()
            groups.setdefault(solver, {})[names[parameter]] = parameter
        if not groups:
            remedy = "layers of an ONNX file learn with a section [<ONNX section>:<Type>_def] or one of their name"
            raise N2D2Error("E431", "no layer learns", where=module.graph.name, remedy=remedy)
        self.groups = [(solver, _optimizer(solver, group.values()), group) for solver, group in groups.items()]

    def step(self, rate: Callable[[SolverSettings], float], batches: int = 0) -> None:
        """Update all parameters, each at the rate of its solver.

        `batches`: number of batches since training began. If given, only parameters whose IterationSize divides it are updated,
        by the mean of their gradients. Those of the others accumulate.
        """
        for solver, optimizer, parameters in self.groups:
            if batches % solver.iteration_size:
                continue
            for parameter in parameters.values() if batches and solver.iteration_size > 1 else ():
                if parameter.grad is not None:
                    parameter.grad /= solver.iteration_size
            optimizer.param_groups[0]["lr"] = rate(solver)
            optimizer.step()
            optimizer.zero_grad()
            if solver.clamping is not None:
                with torch.no_grad():
                    for parameter in parameters.values():
                        parameter.clamp_(*solver.clamping)

    def tensors(self) -> dict[str, Tensor]:
        """Return the slots of the optimizers, and the gradients that wait for a step, as <parameter>/<slot>."""
        found = {}
        for solver, optimizer, parameters in self.groups:
            for name, parameter in parameters.items():
                found |= {f"{name}/{slot}": value for slot, value in optimizer.state[parameter].items()}
                if solver.iteration_size > 1:
                    found[f"{name}/waiting"] = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        return found


def _optimizer(solver: SolverSettings, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return an optimizer that has all its slots before the first step."""
    zeros = {parameter: torch.zeros_like(parameter) for parameter in parameters}
    if solver.kind == "Adam":
        optimizer = torch.optim.Adam(zeros, lr=0.001, betas=(solver.beta1, solver.beta2), eps=solver.epsilon)
        for parameter, zero in zeros.items():
            optimizer.state[parameter] = {"step": torch.zeros(()), "exp_avg": zero, "exp_avg_sq": zero.clone()}
        return optimizer
    nesterov = not solver.polyak_momentum and solver.momentum > 0
    optimizer = torch.optim.SGD(zeros, lr=0.01, momentum=solver.momentum, weight_decay=solver.decay, nesterov=nesterov)
    if solver.momentum > 0:
        optimizer.state.update({parameter: {"momentum_buffer": zero} for parameter, zero in zeros.items()})
    return optimizer


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
    learn: Source,
    validation: Stimuli | None,
    schedule: Schedule,
    folder: Path,
) -> Progress:
    """Train a module. Write `weights` (last epoch), `weights_validation` (best epoch) and a checkpoint into `folder`.

    Every process of torchrun calls this function; the first one writes. The same seed and kind of machine give the same
    weights. Raises E431 for settings that cannot be trained, E432 for a loss that is not finite, E433 for a wrong checkpoint.
    """
    with _processes(schedule.device) as (rank, count):
        module.to(schedule.device)
        solvers = _Solvers(module, recipes)
        checkpoint = folder / "training" / "checkpoint.npz"
        progress = _restore(checkpoint, module, solvers) if schedule.resume else Progress()
        _check_batches(module, min(schedule.batch, len(learn.stimuli)) // count)
        folder.mkdir(parents=True, exist_ok=True)
        wrapped: nn.Module = DistributedDataParallel(module) if count > 1 else module
        checked = None if validation is None else Source(validation)
        epochs = ceil(schedule.stimuli / len(learn.stimuli))
        while progress.seen < schedule.stimuli:
            loss = _epoch(wrapped, solvers, goals, learn, schedule, progress, (rank, count))
            module.clamp_parameters()
            score = float("nan") if checked is None else _score(module, goals, checked, schedule)
            progress.history.append((loss, score))
            text = f"epoch {progress.epoch} of {epochs}: loss {loss:.4f}"
            log.notice("%s", text if checked is None else f"{text}, validation {_score_text(module, goals, score, schedule)}")
            if rank == 0:
                write_weights(folder / "weights", module.arrays())
                if progress.best_epoch == progress.epoch:
                    write_weights(folder / "weights_validation", module.arrays())
                write_checkpoint(checkpoint, _checkpoint_arrays(_tensors(module, solvers), progress))
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
    batches = _shuffled(source, schedule, progress.epoch, schedule.stimuli - progress.seen)
    # every process takes as many of each batch: a part that does not divide is left out
    parts = [batch[: len(batch) // count * count][rank::count] for batch in batches if len(batch) >= count]
    single = [part for part in parts if len(part) > 1] or parts  # statistics of one stimulus are none
    bare = module.module if isinstance(module, DistributedDataParallel) else module
    total, steps = 0.0, 0

    def rate(solver: SolverSettings) -> float:
        return learning_rate(solver, (progress.batches - 1) // solver.iteration_size, schedule.batch, schedule.stimuli)

    read = source.batches(single, progress.epoch)
    for part in log.progress(single, "learning", total=len(single), unit="batch"):
        x, labels = next(read)
        loss = _total_loss(module, goals, x.to(schedule.device), labels)
        value = float(loss.detach())
        if not np.isfinite(value):
            what = f"the loss is {value} after {progress.seen} stimuli"
            raise N2D2Error("E432", what, remedy="use a smaller LearningRate, or add a warm-up (WarmUpDuration)")
        loss.backward()
        steps += 1
        total += value
        progress.seen += len(part) * count
        progress.batches += 1
        solvers.step(rate, progress.batches)
        bare.clamp_parameters()  # type: ignore[operator]
    progress.seen += sum(map(len, batches)) - count * sum(map(len, single))
    return total / max(steps, 1)


def _shuffled(source: Source, schedule: Schedule, epoch: int, most: int | None = None) -> list[np.ndarray]:
    """Return the positions of each batch of an epoch; with `most`, of so many samples."""
    order = np.random.Generator(np.random.PCG64([schedule.seed, epoch])).permutation(len(source.stimuli))[:most]
    return [order[start : start + schedule.batch] for start in range(0, len(order), schedule.batch)]


def explore_rates(
    module: GraphModule, recipes: Mapping[str, LayerRecipe], goals: list[Goal], learn: Source, schedule: Schedule
) -> list[tuple[float, float]]:
    """Return (rate, loss) of each step while the rate rises from 1e-6 to 10; stop at a loss that is not finite."""
    module.to(schedule.device).train()
    torch.manual_seed(schedule.seed)
    solvers, size = _Solvers(module, recipes), len(learn.stimuli)
    _check_batches(module, min(schedule.batch, size))
    count, losses = max(schedule.stimuli // schedule.batch, 2), []
    for epoch in range(ceil(count * schedule.batch / size)):
        for x, labels in learn.batches([part for part in _shuffled(learn, schedule, epoch) if len(part) > 1], epoch):
            rate = 1e-6 * 1e7 ** (len(losses) / (count - 1))
            loss = _total_loss(module, goals, x.to(schedule.device), labels)
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


def _tensors(module: GraphModule, solvers: _Solvers) -> dict[str, Tensor]:
    """Return the tensors that a checkpoint holds; they share the memory of the module and its solvers."""
    layers = {f"module/{name}": tensor for name, tensor in module.state_dict().items()}
    return layers | {f"solver/{name}": tensor for name, tensor in solvers.tensors().items()}


def _checkpoint_arrays(tensors: Mapping[str, Tensor], progress: Progress) -> dict[str, np.ndarray]:
    counts, history = [progress.seen, progress.batches], np.array(progress.history, np.float64).reshape(-1, 2)
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    return {**arrays, "progress/counts": np.array(counts), "progress/history": history}


def _restore(path: Path, module: GraphModule, solvers: _Solvers) -> Progress:
    for solver, _, parameters in solvers.groups:
        for parameter in parameters.values() if solver.iteration_size > 1 else ():
            parameter.grad = torch.zeros_like(parameter)
    tensors = _tensors(module, solvers)
    arrays = read_checkpoint(path, _checkpoint_arrays(tensors, Progress()), grows="progress/history")
    history = [(loss, score) for loss, score in arrays["progress/history"].tolist()]
    stimuli, batches = map(int, arrays["progress/counts"])
    if stimuli < 1 or batches < 1 or not history:
        raise checkpoint_error(path, "is damaged: it has learned nothing")
    for name, tensor in tensors.items():
        tensor.copy_(torch.from_numpy(arrays[name]))
    return Progress(stimuli, batches, history)
