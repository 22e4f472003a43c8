"""Stage train: the network of an INI learns; its weights are folders from which all other stages go on."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from n2d2py import log
from n2d2py.contracts.functions import Logistic
from n2d2py.contracts.ini.recipes import LayerRecipe
from n2d2py.errors import ErrorList, N2D2Error, join_names
from n2d2py.files import write_text
from n2d2py.graph import Graph, Node
from n2d2py.operators.pointwise import Activation
from n2d2py.operators.softmax import Softmax
from n2d2py.stages.load import LoadedNetwork, load_stage
from n2d2py.stages.options import RunOptions
from n2d2py.stages.score import expected_outputs
from n2d2py.targets.target import ScoreTarget

if TYPE_CHECKING:
    from n2d2py.training.loop import Goal


def train_stage(path: Path, options: RunOptions) -> RunOptions:
    """Train the network in an INI; the options with which the rest of the run reads its best weights. Writes the folders
    weights, weights_validation (where there is a Validation set) and training into the output folder. Raise E430 without
    PyTorch, E431 what cannot be trained, E432 a loss that is not finite, and what loading raises."""
    if path.suffix != ".ini":
        raise not_trained(path)
    require_torch()
    from n2d2py.training.loop import Schedule, Source, explore_rates, train
    from n2d2py.training.module import build_module

    chosen = options.training
    weights = "/dev/null" if options.load.weights is None else options.load.weights
    # steps and clipping values may be missing: a training with quantizers continues one without them
    loading = replace(options.load, training="now", weights=weights, read_data=True, target=None, pre_samples=-1, extent="all")
    network = load_stage(path, loading, options.folder)
    learn, validation = network.data.get("Learn"), network.data.get("Validation")
    if learn is None:
        raise N2D2Error("E431", "the learning set is empty", where=str(path), remedy="add a [database] with a Learn set")
    seed, data = options.load.seed, network.data
    draw = None if data.learned is None else partial(data.learned, seed)
    if draw is not None and not data.draws:
        learn, draw = draw(0), None
    goals = _goals(network)
    store = network.weights
    assert store is not None and store.recipes is not None
    _warn_of_alpha(network)
    module = build_module(_learned(network.graph, goals), store.recipes, store)
    total = chosen.find_rate or chosen.stimuli or chosen.epochs * len(learn)
    device = "cpu" if chosen.device < 0 else f"cuda:{chosen.device}"
    _check_device(device)
    schedule = Schedule(total, network.batch_size, seed, chosen.patience, device, chosen.resume, chosen.metric)
    source = Source(learn, draw, chosen.workers)
    if chosen.find_rate:
        _write_rates(explore_rates(module, store.recipes, goals, source, schedule), options.folder)
        return options
    log.notice("training: %d stimuli from a set of %d, batch size %d", total, len(learn), network.batch_size)
    progress = train(module, store.recipes, goals, source, validation, schedule, options.folder)
    best = options.folder / ("weights" if validation is None else "weights_validation")
    if validation is not None:
        log.notice("best validation score in epoch %d: %s", progress.best_epoch, best)
    return replace(options, load=replace(options.load, weights=str(best), training="done"))


def _write_rates(rates: list[tuple[float, float]], folder: Path) -> None:
    from n2d2py.training.rates import find_steepest_rate

    write_text(folder / "training" / "find_lr.csv", "rate,loss\n" + "".join(f"{rate:.6g},{loss:.6g}\n" for rate, loss in rates))
    rate = find_steepest_rate(rates)
    if rate is None:
        log.notice("no learning rate made the loss fall: check the fillers, the loss and the data")
    else:
        log.notice("the loss falls steepest at a learning rate of %.2g", rate)
    log.notice("written: %s", folder / "training" / "find_lr.csv")


def require_torch() -> None:
    """Raise E430 where PyTorch is not installed."""
    if find_spec("torch") is None:
        raise N2D2Error("E430", "training requires PyTorch", remedy="pip install n2d2py[train]")


def not_trained(path: Path) -> N2D2Error:
    """Return the error for a file that is not an INI."""
    return N2D2Error("E431", "training requires an INI file", where=str(path), remedy="write an INI that names the file")


def is_first_process() -> bool:
    """True if this process continues after a training: torchrun starts several."""
    return int(os.environ.get("RANK", "0")) == 0


def _check_device(device: str) -> None:
    import torch  # pyright: ignore[reportMissingImports]

    if device != "cpu" and not torch.cuda.is_available():  # pyright: ignore[reportAttributeAccessIssue]
        raise N2D2Error("E431", f"device {device} does not exist", remedy="remove -dev, or give -dev -1 for the CPU")


def _goals(network: LoadedNetwork) -> list[Goal]:
    errors, goals = [], []
    for target in network.targets:
        if target.kind != "TargetScore":
            log.notice("target '%s' (%s) is not learned", target.name, target.kind)
            continue
        try:
            if target.unscored is not None and not any(goal.loss for goal in goals):
                raise target.unscored  # the first one is scored after each epoch
            goals.append(_goal(network, target))
        except N2D2Error as error:
            errors.append(error)
    known = {goal.tensor for goal in goals if not goal.loss}
    for node in network.graph.nodes:
        if (recipe := _recipe(network, node)) is not None and recipe.adds_margin and node.output not in known:
            what = f"'{node.name}' adds a margin to the right output, which no target names"
            errors.append(N2D2Error("E431", what, where=node.location, remedy=f"add a section [{node.name}.Target]"))
    ErrorList.raise_if(errors)
    goals.sort(key=lambda goal: not goal.loss)  # the first one is validated
    if not goals or not goals[0].loss:
        what = "the network has no target to train"
        raise N2D2Error("E431", what, where=network.place, remedy="add a section [<layer>.Target]")
    return goals


def _learned(graph: Graph, goals: list[Goal]) -> Graph:
    """Return the graph up to the goals and to layers with weights. Later layers are for inference alone."""
    trained = graph.copy()
    trained.outputs = [*(goal.tensor for goal in goals), *(node.output for node in graph.nodes if node.params)]
    trained.prune()
    return trained


def _recipe(network: LoadedNetwork, node: Node) -> LayerRecipe | None:
    return (network.weights.recipes or {}).get(node.name) if network.weights is not None else None


def _goal(network: LoadedNetwork, target: ScoreTarget) -> Goal:
    from n2d2py.training.loop import Goal

    graph = network.graph
    node = graph.producer(target.tensor)
    expected = partial(_expected, network, target)
    for stimuli in (network.data.get("Learn"), network.data.get("Validation")):
        if stimuli is not None and not target.as_data:
            expected(stimuli.labels[stimuli.labels >= 0])
    if target.as_data:
        return Goal(target.tensor, "squares", 1.0, 0.0, expected, is_input=True)
    if node is not None and (recipe := _recipe(network, node)) is not None and recipe.adds_margin:
        return Goal(target.tensor, "", 1.0, 0.0, expected)
    if node is not None and _with_loss(network, node):
        if isinstance(node.op, Softmax):
            return Goal(node.inputs[0], "cross entropy", 1.0, 0.0, expected)
        return Goal(target.tensor, "logistic", 1.0, 0.0, expected)
    return Goal(target.tensor, "squares", target.high, target.low, expected)


def _with_loss(network: LoadedNetwork, node: Node) -> bool:
    """True if a Softmax or Logistic is trained with cross entropy, as WithLoss asks for; layers of ONNX files have no such
    key."""
    recipe = _recipe(network, node)
    if isinstance(node.op, Softmax):
        return recipe is None or "WithLoss" not in recipe.values or recipe.values["WithLoss"]
    # the layers of ONNX files have no such value
    function = None if recipe is None or "Type" not in recipe.values else recipe.values["ActivationFunction"]
    row = node.op.function if isinstance(node.op, Activation) else node.activation
    return isinstance(row, Logistic) and function in (None, "LogisticWithLoss")


def _expected(network: LoadedNetwork, target: ScoreTarget, labels: np.ndarray) -> np.ndarray:
    ids = np.asarray(expected_outputs(network, target, labels), np.int64)
    if ids.ndim == 1 and ids.min(initial=0) < 0:
        what = f"target '{target.name}' has stimuli without a label"
        raise N2D2Error("E431", what, where=target.location, remedy="label every stimulus of the Learn set")
    return ids


def _warn_of_alpha(network: LoadedNetwork) -> None:
    """Warn where SAT starts from the default clipping value: N2D2's code and documentation name two of them."""
    store = network.weights
    assert store is not None
    trained = {name: recipe.values for name, recipe in (store.recipes or {}).items() if "QAct" in recipe.values}
    free = {name: values for name, values in trained.items() if values["QAct"] == "SAT" and not values.is_given("QAct.Alpha")}
    lacking = {name: values for name, values in free.items() if not store.has(name, "QAct_SAT_Alpha")}
    if lacking:
        values = next(iter(lacking.values()))
        what = f"there is no QAct.Alpha for {join_names(list(lacking), 6)}, so training starts from {values['QAct.Alpha']:g}"
        remedy = "set QAct.Alpha to about the largest output of each layer"
        log.warning("W431", what, where=values.where("QAct"), remedy=remedy)
