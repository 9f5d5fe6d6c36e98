"""(q) What a decision costs: asking for a trial and telling its result, logged durably so that it can be made again,
against optuna's own ask and tell with its SQLite storage. Without any runs."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import harness
from bench.harness import Result
from runyard.model.roles import Caller, Role
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.document import Method
from runyard.settings import Settings
from runyard.store import Store, open_store
from runyard.yard import Yard
from runyard.yard.sweeps import decision_log, lookup, search, submission
from runyard.yard.sweeps.decision_log import Decision, DecisionKind

TRIALS = 200
SPACE = {"lr": "log:1e-5..1e-1", "depth": "2..8", "dropout": "0.0..0.9"}


def measure(place: Path) -> Iterator[Result]:
    seconds = harness.interleaved(3, {"runyard": lambda: ours(place), "optuna": lambda: plain(place)})
    yield Result(
        letter="q",
        what=f"ask and tell, {TRIALS} trials of TPE, durable",
        value=seconds["runyard"] / TRIALS * 1000,
        against="optuna with its SQLite storage",
        alternative=seconds["optuna"] / TRIALS * 1000,
        unit="ms/trial",
        target="not slower",
        met=seconds["runyard"] <= seconds["optuna"],
    )


def ours(place: Path) -> float:
    """The parts of a pass: the history, the question, and one commit each for the answer and the result."""
    home = Path(tempfile.mkdtemp(dir=place))
    store = open_store(f"sqlite:///{home}/yard.db")
    yard = Yard(Settings(home=home / "home"), store)
    yard.sites.ensure("local", "local").result()
    document = {"command": ["train"], "space": SPACE, "method": Method.TPE, "trials": TRIALS, "minimize": "loss"}
    sweep = SweepSpec.parse(document)
    number = yard.sweeps.submit(Caller(name="bench", role=Role.MEMBER), sweep).result()["id"]
    begin = time.perf_counter()
    _search(store, number, sweep)
    taken = time.perf_counter() - begin
    yard.close()
    return taken


def _search(store: Store, number: int, sweep: SweepSpec) -> None:
    logs, asking = decision_log.Logs(store), search.Search(sweep)
    for trial in range(1, TRIALS + 1):
        asked = asking.ask(logs.refresh(number), trial)
        told = _told(trial, asked.body["chosen"])
        store.write(lambda connection, made=asked: _add(connection, number, sweep, made)).result()  # type: ignore[misc]
        store.write(
            lambda connection, made=told: decision_log.append(connection, 0.0, lookup.find(connection, number), [made])  # type: ignore[misc]
        ).result()


def _add(connection: Any, number: int, sweep: SweepSpec, asked: Decision) -> None:
    row = lookup.find(connection, number)
    decision_log.append(connection, 0.0, row, [asked])
    [trial] = submission.add_trials(connection, number, row.made, [sweep.complete(asked.body["chosen"])])
    submission.add_places(connection, number, sweep, [trial])


def _told(trial: int, chosen: dict[str, Any]) -> Decision:
    return Decision(
        kind=DecisionKind.TELL, trial=trial, body={"state": "complete", "value": _loss(chosen), "n": 1, "rows": []}
    )


def _loss(params: dict[str, Any]) -> float:
    return (math.log10(params["lr"]) + 3) ** 2 + float(params["dropout"])


def plain(place: Path) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    directory = Path(tempfile.mkdtemp(dir=place))
    sampler = optuna.samplers.TPESampler(seed=0, multivariate=True)
    study = optuna.create_study(storage=f"sqlite:///{directory}/optuna.db", sampler=sampler)
    begin = time.perf_counter()
    for _ in range(TRIALS):
        trial = study.ask()
        chosen = {
            "lr": trial.suggest_float("lr", 1e-5, 1e-1, log=True), "depth": trial.suggest_int("depth", 2, 8),
            "dropout": trial.suggest_float("dropout", 0.0, 0.9),
        }  # fmt: skip
        study.tell(trial, _loss(chosen))
    return time.perf_counter() - begin
