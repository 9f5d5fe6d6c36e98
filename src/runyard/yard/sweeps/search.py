"""Methods that use results, by optuna: they choose the next trial from the results of earlier ones.

Each trial is chosen by a new sampler, seeded for that trial, with an in-memory study built from the sweep's log. So the
answer depends only on the document and the log, in any process and however often it is computed.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.model import template
from runyard.model.metrics import from_json
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.dimensions import Choices, Dimension, Range
from runyard.model.sweep.document import Method
from runyard.model.sweep.seeds import seed_of
from runyard.model.sweep.space import Params, Space
from runyard.yard.sweeps.decision_log import Decision, DecisionKind, History

if TYPE_CHECKING:
    import optuna

NEEDED = {  # modules beside optuna itself, and how to get them
    Method.TPE: {"optuna": "runyard[sweep]"},
    Method.GP: {"optuna": "runyard[sweep]", "scipy": "scipy", "torch": "torch"},
    Method.CMAES: {"optuna": "runyard[sweep]", "cmaes": "runyard[sweep]"},
}


def check_installed(method: Method) -> None:
    """Raises if the packages that the method needs are not installed."""
    needed = NEEDED.get(method, {})
    missing = [module for module in needed if importlib.util.find_spec(module) is None]
    if missing:
        packages = " ".join(dict.fromkeys(f"'{needed[module]}'" for module in missing))
        raise errors.InvalidInput(
            f"method: this yard cannot do {method}, because {missing[0]} is not installed where it runs",
            f"there: pip install {packages}; grid, random and qmc need nothing",
        )


class Search:
    """The search of one sweep. Its caches save work and change no answer."""

    def __init__(self, sweep: SweepSpec) -> None:
        import optuna

        assert sweep.space is not None and sweep.objective is not None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._sweep, self._space, self._goal = sweep, sweep.space, sweep.objective.goal
        self._distributions = {name: _distribution(each) for name, each in sweep.space.dimensions.items()}
        self._trials: dict[int, tuple[Mapping[str, Any] | None, optuna.trial.FrozenTrial]] = {}

    def ask(self, history: History, trial: int) -> Decision:
        """The configuration of the next trial, given all earlier ones."""
        import optuna

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that something is experimental is for us to know
            study = optuna.create_study(direction=self._goal.value, sampler=_sampler(self._sweep, trial))
            study.add_trials(self._frozen(known, history) for known in history.asked)
            new = study.ask()
            chosen = self._space.choose(lambda name, dimension: _suggest(new, name, dimension))
            notes = _notes(self._sweep, study)
        return Decision(kind=DecisionKind.ASK, trial=trial, body={"chosen": chosen, **notes})

    def _frozen(self, trial: int, history: History) -> optuna.trial.FrozenTrial:
        told = history.told.get(trial)
        known = self._trials.get(trial)
        if known is None or known[0] is not told:
            known = self._trials[trial] = (told, self._freeze(history.asked[trial], told))
        return known[1]

    def _freeze(self, asked: Mapping[str, Any], told: Mapping[str, Any] | None) -> optuna.trial.FrozenTrial:
        from optuna.trial import create_trial

        chosen = _flat(self._space, asked["chosen"])
        params = {name: _internal(self._space.dimensions[name], value) for name, value in chosen.items()}
        trial = create_trial(
            params=params, distributions={name: self._distributions[name] for name in params},
            system_attrs=asked.get("notes"), **_outcome(told),
        )  # fmt: skip
        trial.__class__ = _shared()
        return trial


@functools.cache
def _shared() -> type[optuna.trial.FrozenTrial]:
    """Trials that studies copy one level deep: their contents never change, and deep copies were most of the work."""
    from optuna.trial import FrozenTrial

    class Shared(FrozenTrial):
        def __deepcopy__(self, _memo: dict[int, Any]) -> FrozenTrial:
            return copy.copy(self)

    return Shared


def _sampler(sweep: SweepSpec, trial: int) -> optuna.samplers.BaseSampler:
    from optuna import samplers

    seed = seed_of(sweep.seed, {}, trial)
    has_conditions = any(dimension.when for dimension in (sweep.space or Space({})).dimensions.values())
    if sweep.method is Method.TPE:
        return samplers.TPESampler(seed=seed, multivariate=True, group=has_conditions)
    if sweep.method is Method.GP:
        return samplers.GPSampler(seed=seed, deterministic_objective=False)
    return samplers.CmaEsSampler(seed=seed)


def _notes(sweep: SweepSpec, study: optuna.Study) -> dict[str, Any]:
    """The internal state of CMA-ES, from which it continues. The other methods need only the results."""
    if sweep.method is not Method.CMAES:
        return {}
    return {"notes": dict(study.get_trials(deepcopy=False)[-1].system_attrs)}


def _suggest(trial: optuna.Trial, name: str, dimension: Dimension) -> Any:
    if isinstance(dimension, Choices):
        return dimension.values[trial.suggest_categorical(name, range(len(dimension.values)))]
    highest = _highest(dimension)
    if dimension.is_whole:
        step = int(dimension.step or 1)
        return trial.suggest_int(name, int(dimension.low), int(highest), step=step, log=dimension.log)
    width = None if dimension.step is None else float(dimension.step)
    return dimension.tidy(trial.suggest_float(name, dimension.low, highest, step=width, log=dimension.log))


def _distribution(dimension: Dimension) -> optuna.distributions.BaseDistribution:
    """As `_suggest` has them."""
    from optuna import distributions

    if isinstance(dimension, Choices):
        return distributions.CategoricalDistribution(range(len(dimension.values)))
    highest = _highest(dimension)
    if dimension.is_whole:
        step = int(dimension.step or 1)
        return distributions.IntDistribution(int(dimension.low), int(highest), log=dimension.log, step=step)
    width = None if dimension.step is None else float(dimension.step)
    return distributions.FloatDistribution(float(dimension.low), float(highest), log=dimension.log, step=width)


def _highest(dimension: Range) -> int | float:
    """The last one that steps come to."""
    return dimension.high if dimension.count is None else dimension.nth(dimension.count - 1)


def _outcome(told: Mapping[str, Any] | None) -> dict[str, Any]:
    from optuna.trial import TrialState

    value = from_json(told["value"]) if told and told["value"] is not None else None
    if told is None:
        return {"state": TrialState.RUNNING}
    if value is None or told["state"] == "failed":
        return {"state": TrialState.FAIL}
    if told["state"] == "stopped":
        steps = {int(told["step"]): value}
        return {"state": TrialState.PRUNED, "value": value, "intermediate_values": steps}
    return {"state": TrialState.COMPLETE, "value": value}


def _internal(dimension: Dimension, value: Any) -> Any:
    return dimension.index(value) if isinstance(dimension, Choices) else value


def _flat(space: Space, chosen: Params) -> dict[str, Any]:
    missing = object()
    found = {name: template.find(name, chosen, missing) for name in space.dimensions}
    return {name: value for name, value in found.items() if value is not missing}
