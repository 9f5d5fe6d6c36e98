"""`runyard plot`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from runyard import errors
from runyard.cli.commands import metrics
from runyard.cli.input import selection
from runyard.cli.show import formats, output
from runyard.cli.show.charts.chart import Chart, Curve, smooth
from runyard.client import Client, Run

MOST_CURVES = 50
MOST_POINTS = 2000  # of a curve: more than a picture has pixels
HEIGHT = 18


@click.command("plot")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--metric", "names", multiple=True, metavar="NAME", help="Metric to plot, or 'val/*'. Repeatable.")
@click.option("--log", "is_log", is_flag=True, help="Use a logarithmic axis for the values.")
@click.option(
    "--smooth",
    "weight",
    type=click.FloatRange(0, 0.999),
    default=0.0,
    metavar="0..1",
    help="Smooth the curves; 0.9 averages about ten values.",
)
@click.option("--width", type=click.IntRange(20), metavar="N", help="Width in characters (default: the terminal's).")
@click.option("--height", type=click.IntRange(4), metavar="N", default=HEIGHT, show_default=True, help="Lines.")
@click.option("-o", "--output", "target", metavar="FILE", help="Write an image file instead: x.png or x.svg.")
@output.json_option
def command(
    runs: tuple[str, ...], names: tuple[str, ...], is_log: bool, weight: float, width: int | None, height: int,
    target: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Plot metrics of runs in the terminal or into an image file.

    \b
      runyard plot 42 57 --metric val/loss
      runyard plot S1 --metric val/loss --log --smooth 0.9 -o losses.png
    """
    kind = _kind(target)
    found = selection.select(Client(start=False), runs or ("last",))
    chart = _chart(found, names, weight, is_log)
    _check(chart)
    if target is not None:
        _write(chart, kind, Path(target))
    output.writer(as_json).write(_document(chart, target), lambda console: _show(console, chart, target, width, height))


def _kind(target: str | None) -> str:
    kind = Path(target).suffix.lower() if target is not None else ""
    if target is not None and kind not in (".png", ".svg"):
        raise errors.InvalidInput(f"{target!r} is neither .png nor .svg", "use -o curves.png")
    return kind


# --- what to draw -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One metric of one run."""

    run: Run
    name: str
    points: list[tuple[float | None, float, float]]

    @property
    def has_steps(self) -> bool:
        return any(step is not None for step, _, _ in self.points)

    def curve(self, title: str, weight: float) -> Curve:
        """Values without a step, such as those of a summary, are left out if others have one."""
        kept = [point for point in self.points if point[0] is not None] or self.points
        xs = [float(number if step is None else step) for number, (step, _, _) in enumerate(kept, 1)]
        values = [value for _, _, value in kept]
        return Curve(title=title, xs=xs, ys=smooth(values, weight) if weight else values)


def _chart(runs: Sequence[Run], names: Sequence[str], weight: float, is_log: bool) -> Chart:
    lines = [
        Line(run=run, name=name, points=run.points(name, most=MOST_POINTS)[name]) for run, name in _wanted(runs, names)
    ]
    shown = list(dict.fromkeys(line.name for line in lines))
    curves = [line.curve(_label(line, len(shown) > 1, len(runs) > 1), weight) for line in lines]
    about = f"run {runs[0].id}" if len(runs) == 1 else f"{len(runs)} runs"
    return Chart(
        curves=curves,
        title=formats.one_line(f"{shown[0] if len(shown) == 1 else f'{len(shown)} metrics'} of {about}"),
        x_title="step" if any(line.has_steps for line in lines) else "value",
        is_log=is_log,
    )


def _wanted(runs: Sequence[Run], names: Sequence[str]) -> list[tuple[Run, str]]:
    known = {run: [metric["name"] for metric in run.reported()] for run in runs}
    every = metrics.check(known.values(), names)
    if not names and len(every) > 1:
        told = f"name some with --metric; {metrics.offer(every)}"
        raise errors.InvalidInput("these runs have reported several metrics", told)
    found = [(run, name) for run, several in known.items() for name in metrics.wanted(several, names)]
    if not found:
        raise errors.NotFound("none of these runs has reported a metric", "see `runyard metrics`")
    if len(found) > MOST_CURVES:
        raise errors.InvalidInput(f"{len(found)} curves are too many for one plot", "name fewer runs or metrics")
    return found


def _label(line: Line, several_names: bool, several_runs: bool) -> str:
    about = [f"run {line.run.id}"] if several_runs else []
    about += [line.name] if several_names or not several_runs else []
    about += [formats.parameters(line.run.params)] if several_runs else []
    return formats.one_line("  ".join(word for word in about if word))


def _check(chart: Chart) -> None:
    if any(chart.strokes()):
        return
    if chart.is_log and any(dataclasses.replace(chart, is_log=False).strokes()):
        raise errors.Conflict("there is nothing to plot: --log needs values above 0", "leave out --log")
    raise errors.Conflict("there is nothing to plot: no value is a finite number", "see `runyard metrics`")


# --- where to ---------------------------------------------------------------------------------------------------------


def _write(chart: Chart, kind: str, path: Path) -> None:
    from runyard.cli.show.charts import png, svg

    try:
        path.write_bytes(png.draw(chart) if kind == ".png" else svg.draw(chart))
    except OSError as error:
        raise errors.ConfigError(f"{path} cannot be written: {error.strerror}", "name another file") from None


def _document(chart: Chart, target: str | None) -> dict[str, Any]:
    from runyard.model.metrics import to_json

    curves = [
        {"title": curve.title, "steps": list(curve.xs), "values": [to_json(value) for value in curve.ys]}
        for curve in chart.curves
    ]
    return {"title": chart.title, "path": target, "curves": curves}


def _show(console: Any, chart: Chart, target: str | None, width: int | None, height: int) -> None:
    if target is not None:
        click.echo(target)
        return
    from rich.text import Text

    from runyard.cli.show.charts import terminal

    look = terminal.Look(
        width=width or (console.width if console.is_terminal else 100), height=height,
        is_coloured=console.color_system is not None, is_braille=_can_show("⠿┤"),
    )  # fmt: skip
    for line in terminal.draw(chart, look):
        console.print(Text.assemble(*line), no_wrap=True, crop=True)


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
