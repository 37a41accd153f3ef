"""What a benchmark's run says: tables in Markdown and a picture. What it is not: a measurement."""

from pathlib import Path

from columns import TITLES

UNITS = {"µs": 1, "ms": 1000}
# Of a first run: what is shown, and how.
MEASURES = {
    "first s": ("seconds to the end of the first step", 2),
    "second process s": ("the same in a second process", 2),
    "programs": ("programs compiled", 0),
    "process MB": ("the process's largest memory, MB", 0),
    "device MB": ("largest memory on the device, MB", 1),
}


def table(lines: list[list[str]]) -> str:
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])


def times(value: dict, unit: int) -> str:
    return f"{value['median'] / unit:.1f} ({value['min'] / unit:.1f})"


def ratio(cell: dict) -> str:
    if not cell.get("ratio"):
        return "–"
    low, high = cell["ratio"]["quartiles"]
    return f"{cell['ratio']['median']:.2f} ({low:.2f}–{high:.2f})"


def line(name: str, cells: dict) -> str:
    """One row as it is measured, for who watches."""
    found = []
    for column, cell in cells.items():
        if cell.get("error"):
            found.append(f"{column}: {cell['error']}")
        elif "wall" in cell:
            found.append(f"{column} {cell['wall']['us']['median']:.1f}")
        elif "first s" in cell:
            found.append(f"{column} {cell['first s']['median']:.2f} s")
    return f"{name}: " + ", ".join(found)


def call_table(result: dict, clock: str, words: str) -> str:
    """Ours in units of time, every other column as times ours."""
    unit, names = result["suite"]["unit"], result["columns"]
    others = [n for n in names if n != "ours"]
    head = [f"{words}: times ours, median (quartiles)", f"ours, {unit} (least)"]
    lines = [[*head, *(TITLES[n] for n in others)]]
    for row, cells in result["rows"].items():
        ours = cells.get("ours", {}).get(clock)
        first = times(ours["us"], UNITS[unit]) if ours else "–"
        rest = [ratio(cells[n][clock]) if clock in cells.get(n, {}) else "–" for n in others]
        lines.append([f"`{row}`", first, *rest])
    return table(lines)


def start_table(result: dict, measure: str, words: str, digits: int) -> str | None:
    def cell(row: dict, name: str) -> str:
        value = row.get(name, {}).get(measure)
        return f"{value['median']:.{digits}f}" if value else "–"

    names = result["columns"]
    lines = [[words, *(TITLES[n] for n in names)]]
    lines += [[row, *(cell(cells, n) for n in names)] for row, cells in result["rows"].items()]
    has = any(c != "–" for row in lines[1:] for c in row[1:])
    return table(lines) if has else None


def goals(result: dict) -> str | None:
    lines = [["goal: times ours", "at least", "wall time", "CPU time"]]
    for goal in result["suite"]["goal"]:
        cell = result["rows"].get(goal["row"], {}).get(goal["column"], {})
        if "wall" not in cell or not cell["wall"].get("ratio"):
            continue
        found = []
        for clock in ("wall", "cpu"):
            value = cell[clock]["ratio"]["median"]
            found.append(f"{value:.2f}" if value >= goal["at_least"] else f"**short** {value:.2f}")
        name = f"`{goal['row']}`, {TITLES[goal['column']]}"
        lines.append([name, f"{goal['at_least']:g}", *found])
    return table(lines) if len(lines) > 1 else None


def about(result: dict) -> str:
    run = result["run"]
    say = []
    for column, info in run["about"].items():
        if column == "ours":
            plugin = Path(info["plugin"]).name
            say.append(f"torch {info['torch']}, {plugin} (PJRT 0.{info['pjrt_api_minor']})")
        elif column == "jax":
            say.append(f"JAX {info['jax']} on {info['backend']}")
        elif column == "google":
            tcmalloc = "with" if info["tcmalloc"] else "without"
            say.append(f"torch_tpu {info['version']} on the same plugin, {tcmalloc} tcmalloc")
    return (
        f"{run['date']}: {run['machine']}, load {run['load'][0]:.1f} at the start and "
        f"{run['load'][1]:.1f} at the end; {run['rounds']} rounds. {'; '.join(say)}."
    )


def failures(result: dict) -> list[str]:
    return [
        f"`{row}`, {TITLES[column]}: {cell['error']}."
        for row, cells in result["rows"].items()
        for column, cell in cells.items()
        if cell.get("error")
    ]


def markdown(result: dict) -> str:
    parts = [about(result)]
    parts += [f"{TITLES[name]}: left out: {why}." for name, why in result["skipped"].items()]
    if result["suite"]["kind"] == "start":
        parts += [start_table(result, measure, *how) for measure, how in MEASURES.items()]
    else:
        parts += [call_table(result, "wall", "wall time"), call_table(result, "cpu", "CPU time")]
        counted = (
            f"{value} {name.replace('_', ' ')}" for name, value in result["counters"].items()
        )
        parts.append(f"Ours, first calls included: {', '.join(counted)}.")
    parts += [*failures(result), goals(result)]
    return "\n\n".join(p for p in parts if p)


def picture(result: dict, path: Path) -> None:
    """Bars: one group a row, one bar a column."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    start = result["suite"]["kind"] == "start"
    measures = ("first s", "second process s") if start else ("wall", "cpu")
    words = ("first step, s", "first step of a second process, s") if start else ("wall", "CPU")
    rows, names = list(result["rows"]), result["columns"]
    fig, axes = plt.subplots(1, 2, figsize=(13, 1.5 + 0.12 * len(rows) * len(names)), sharey=True)
    height = 0.8 / max(1, len(names))
    for ax, measure, label in zip(axes, measures, words, strict=True):
        for i, name in enumerate(names):
            at, long = [], []
            for k, cells in enumerate(result["rows"].values()):
                cell = cells.get(name, {}).get(measure)
                if not cell:
                    continue
                at.append(k + (i - (len(names) - 1) / 2) * height)
                scale = UNITS.get(result["suite"]["unit"], 1)
                long.append(cell["median"] if start else cell["us"]["median"] / scale)
            ax.barh(at, long, height=height, label=TITLES[name])
        ax.set_xscale("log")
        unit = result["suite"]["unit"]
        ax.set_xlabel(label if start else f"{unit} of {label} time a call, median")
    axes[0].set_yticks(range(len(rows)), rows)
    axes[0].invert_yaxis()
    axes[1].legend(fontsize="small")
    fig.tight_layout()
    fig.savefig(path, dpi=110)
    plt.close(fig)
