"""examples/patchwise learns, repeats itself, survives what happens to runs, and says what is wrong with its input."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.labs.components import TRAINER_PYTHON
from tests.labs.trainer import PATCHWISE, Training, classify, draw_page, run, start
from tests.labs.yard import Yard

pytestmark = [pytest.mark.long, pytest.mark.component("trainer")]

PORTS = ["Background Model", "Model 0", "Model 1", "Model 2"]
QUICK = ("--samples", 24, "--epochs", 3)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_page(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def whole(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """A short training that nothing happened to."""
    return start(tmp_path_factory.mktemp("whole"), page, *QUICK).end()


def test_the_run_file_trains_models_that_tell_the_layers_apart(yard: Yard, tmp_path: Path) -> None:
    yard.env["PATH"] = f"{TRAINER_PYTHON.parent}:{yard.env['PATH']}"
    done = yard.cli("submit", "-f", "run.yaml", "--follow", cwd=PATCHWISE, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    yard.client().last().fetch(tmp_path / "models")
    for page in (tmp_path / "models" / "page", draw_page(tmp_path / "other", seed=2)):
        score = classify(page, tmp_path / "models")
        print(f"{page.name}: {score}")
        assert score["chance"] == 0.25
        assert score["mean"] > 0.6, "on the page it learned from, and on one that it never saw"


def test_it_tells_how_it_goes(whole: Training) -> None:
    models = whole.result()
    assert [model["port"] for model in models] == PORTS
    rows = [json.loads(line) for line in (whole.output / "metrics.jsonl").read_text().splitlines()]
    first = [row for row in rows if "background/loss" in row]
    assert [row["step"] for row in first] == [1, 2, 3]
    assert max(row["background/val_accuracy"] for row in first) == models[0]["val_accuracy"]
    assert first[-1]["background/loss"] < first[0]["background/loss"]
    assert {key for row in rows for key in row} >= {"layer_2/accuracy", "layer_2/val_loss", "layer_1/val_accuracy"}


def test_the_same_seed_gives_the_same_models(whole: Training, page: Path, tmp_path: Path) -> None:
    again = start(tmp_path / "again", page, *QUICK).end()
    assert again.files() == whole.files()
    other = start(tmp_path / "other", page, *QUICK, RUNYARD_SEED="7").end()
    assert other.files()["Model 0.hdf5"] != whole.files()["Model 0.hdf5"]


def test_killed_and_resumed_it_ends_as_if_nothing_had_happened(whole: Training, page: Path, tmp_path: Path) -> None:
    keep = {"CHECKPOINT_DIR": str(tmp_path / "checkpoints")}
    struck = ("layer_0: epoch   2", int(signal.SIGKILL))
    assert start(tmp_path / "first", page, *QUICK, struck=struck, **keep).end().code == -signal.SIGKILL
    resumed = start(tmp_path / "second", page, *QUICK, RUNYARD_RESUME="1", **keep).end()
    assert "resuming background after epoch 3 " in resumed.said
    assert "resuming layer_0 after epoch " in resumed.said
    assert "background: epoch" not in resumed.said, "what was over is not trained again"
    assert resumed.files() == whole.files()


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_warned_it_saves_in_the_middle_of_an_epoch(
    whole: Training, page: Path, tmp_path: Path, number: signal.Signals
) -> None:
    keep = {"CHECKPOINT_DIR": str(tmp_path / "checkpoints")}
    struck = ("background: epoch   1", int(number))
    warned = start(tmp_path / "first", page, *QUICK, struck=struck, **keep).end()
    assert warned.code == 75
    assert "saved a checkpoint" in warned.said
    assert not (warned.output / "result.json").exists()
    resumed = start(tmp_path / "second", page, *QUICK, RUNYARD_RESUME="1", **keep).end()
    assert resumed.files() == whole.files()


def test_memory_is_bounded_by_the_batch(tmp_path: Path) -> None:
    page = draw_page(tmp_path / "page", side=1600)
    strip(page / "regions.png")  # the background alone has many patches
    flags = ("--patch-height", 64, "--patch-width", 64, "--filters", 1, "--batch", 32, "--epochs", 1)
    few = start(tmp_path / "few", page, *flags, "--samples", 64).end()
    many = start(tmp_path / "many", page, *flags, "--samples", 3500).end()
    held_at_once = many.result()[0]["patches"] * 64 * 64 * (3 + 1) * 4
    print(f"peak {few.peak >> 20} and {many.peak >> 20} MiB; the patches as floats are {held_at_once >> 20} MiB")
    assert few.result()[0]["patches"] == 64
    assert held_at_once > 200 << 20
    assert many.peak - few.peak < 50 << 20


def test_it_takes_named_layers_and_the_settings_of_a_request(tmp_path: Path) -> None:
    page, request = draw_page(tmp_path / "page", named=True), tmp_path / "request.json"
    settings = {
        "Maximum number of training epochs": 1,
        "Maximum number of samples per label": 16,
        "Patch height": 512,
        "Maximum time (D-HH:MM)": "0-06:00",
        "Maximum memory (MB)": 257000,
        "CPUs": 6,
        "Slurm Notification Email": "",
        "token": "secret",
    }
    request.write_text(json.dumps({"inputs": {"Image": "/uploads/…"}, "settings": settings}))
    models = start(tmp_path / "output", page, "--settings", request).end().result()
    assert [model["port"] for model in models] == [
        "Background Model",
        "Music Symbol Model",
        "Staff Lines Model",
        "Text Model",
    ]
    assert {(model["epochs"], model["patches"]) for model in models} == {(1, 16)}, "and flags win over the file"


def paint(image: str, path: Path) -> None:
    run("-c", f"from PIL import Image; {image}.save({str(path)!r})")


def transparent(path: Path) -> None:
    paint("Image.new('RGBA', (400, 400))", path)


def strip(path: Path) -> None:
    paint("Image.new('RGBA', (1600, 240), 'red').crop((0, 0, 1600, 1600))", path)


def other_size(path: Path) -> None:
    paint("Image.new('RGBA', (300, 400))", path)


def no_image(path: Path) -> None:
    path.write_text("no image")


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:9000])


def copied_from_the_image(path: Path) -> None:
    shutil.copy(path.with_name("image.png"), path)


BROKEN: list[tuple[str, Callable[[Path], object], str]] = [
    ("image.png", Path.unlink, "image.png is missing in "),
    ("layer_1.png", Path.unlink, "layer_1.png is missing in "),
    ("layer_0.png", other_size, "layer_0.png is 300 × 400 pixels, and image.png is 400 × 400"),
    ("regions.png", no_image, "regions.png cannot be read as an image"),
    ("image.png", cut_short, "image.png cannot be read as an image"),
    ("layer_2.png", copied_from_the_image, "layer_2.png has no transparency"),
    ("layer_2.png", transparent, "layer_2.png marks no pixel around which a patch of 32 × 32 fits"),
    ("regions.png", transparent, "layer_0.png marks no pixel around which a patch of 32 × 32 fits"),
]


@pytest.mark.parametrize(("file", "harm", "words"), BROKEN, ids=[f"{file}-{harm.__name__}" for file, harm, _ in BROKEN])
def test_bad_pages_are_one_sentence(
    page: Path, tmp_path: Path, file: str, harm: Callable[[Path], object], words: str
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(page, broken)
    harm(broken / file)
    refuses(start(tmp_path / "output", broken), words)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--patch-height", "30"], "patch height must be a multiple of 4, not 30"),
        (["--patch-width", "4"], "Patch width must be at least 16"),
        (["--patch-height", "512"], "background.png marks no pixel around which a patch of 512 × 32 fits on the page"),
        (["--validation", "1"], "validation must lie between 0 and 1"),
        (["--learning-rate", "0"], "learning rate must be more than 0"),
        (["--settings", "/nowhere"], "the settings /nowhere cannot be read"),
    ],
)
def test_bad_flags_are_one_sentence(page: Path, tmp_path: Path, flags: list[str], words: str) -> None:
    refuses(start(tmp_path / "output", page, *flags), words)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([1], "are not a JSON object"),
        ({"Patch depth": 3}, "there is no setting 'Patch depth'; there are: Maximum number of training epochs, "),
        ({"Patch height": "64"}, "Patch height must be a whole number, not '64'"),
    ],
)
def test_bad_settings_are_one_sentence(page: Path, tmp_path: Path, settings: object, words: str) -> None:
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    refuses(start(tmp_path / "output", page, "--settings", tmp_path / "settings.json"), words)


def test_a_directory_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    refuses(start(tmp_path / "output", tmp_path / "nowhere"), "nowhere is not a directory")
    (tmp_path / "empty").mkdir()
    refuses(start(tmp_path / "output", tmp_path / "empty"), "image.png is missing in ")


def test_a_checkpoint_of_another_request_is_not_gone_on_from(whole: Training, page: Path, tmp_path: Path) -> None:
    checkpoints = tmp_path / "checkpoints"
    shutil.copytree(whole.output / "checkpoints", checkpoints)
    other = start(tmp_path / "output", page, "--epochs", 4, RUNYARD_RESUME="1", CHECKPOINT_DIR=str(checkpoints))
    refuses(other, "is of other inputs or settings; remove it to begin anew")
    cut_short(checkpoints / "background.npz")
    torn = start(tmp_path / "output", page, *QUICK, RUNYARD_RESUME="1", CHECKPOINT_DIR=str(checkpoints))
    refuses(torn, "cannot be read")


def refuses(training: Training, words: str) -> None:
    assert training.end().code == 2, training.complained
    assert training.said == ""
    assert training.complained.count("\n") == 1
    assert training.complained.startswith("trainer: ")
    assert words in training.complained
