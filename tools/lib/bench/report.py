# SPDX-License-Identifier: BSL-1.0
"""Medians and ratios of a run, and the tables that show them."""
import statistics
import sys

from peers import ALL, FLOORS


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def measured(values, failure):
    if not values:
        return {"failure": failure or "nothing measured"}
    low, high = quartiles(values)
    found = {"median": statistics.median(values), "low": low, "high": high, "samples": values}
    if failure:
        found["failure"] = failure
    return found


def take(sample, what):
    return sample["value"] if what is None else sample["extra"][what]


def scaled(goal, row, reference, floors, threads):
    """What this machine's floors make of a goal that was told for the reference's."""
    known = lambda run: "median" in floors[run]
    if "rmws" in row and known("switch") and known("rmw"):
        plain = goal - row["rmws"] * reference["rmw"]
        return row["rmws"] * floors["rmw"]["median"] + plain * floors["switch"]["median"] / reference["switch"]
    if "floor" in row and known(row["floor"]["run"]):
        return goal * floors[row["floor"]["run"]]["median"] / row["floor"]["reference"]
    if "threads" in row and threads is not None:
        return goal * threads / row["threads"]
    return goal


def goals_of(row, workers, reference, floors, threads, quick):
    if quick and row.get("full_goal"):
        return {}
    told = {g: row[g][str(workers)] for g in ("must", "aim") if str(workers) in row.get(g, {})}
    return {g: scaled(goal, row, reference, floors, threads) for g, goal in told.items()}


def goals_by_peers(row, found):
    """Goals that are told by what others reached in this run: none of them, times its factor, may be less."""
    goals = {}
    for goal in ("must", "aim"):
        limits = [t * found[p]["median"] for p, t in row.get(goal + "_by", {}).items() if "median" in found.get(p, {})]
        if limits:
            goals[goal] = min(limits)
    return goals


def threads_of(cell, row):
    """The same by plain threads, one worker; or None."""
    if cell is None or not cell.samples:
        return None
    return statistics.median(take(s, row.get("take")) for s in cell.samples)


def collect(plan, workloads, cells, a):
    """Everything that is known after a run, ready for JSON."""
    by = {(c.workload, c.workers, c.peer): c for c in cells}
    floors = {}
    for f in plan["floors"]:
        cell = by[f["run"], 1, "floors"]
        unit = cell.samples[0]["unit"].replace("us", "µs") if cell.samples else ""
        floors[f["run"]] = {
            "title": f["title"],
            "unit": unit,
            **measured([s["value"] for s in cell.samples], cell.failure),
        }
    rows = []
    for w in workloads:
        for workers in w["workers"]:
            for row in w["rows"]:
                found = {}
                threads = threads_of(by.get((w["name"], 1, "threads")), row)
                for peer in ALL:
                    cell = by.get((w["name"], workers, peer))
                    if cell is not None:
                        found[peer] = measured([take(s, row.get("take")) for s in cell.samples], cell.failure)
                rows.append({
                    "workload": w["name"],
                    "workers": workers,
                    "part": w.get("part", "fibers"),
                    "title": row.get("quick_title", row["title"]) if a.quick else row["title"],
                    "unit": row["unit"],
                    "chart": row.get("chart", True),
                    **goals_of(row, workers, plan["reference"], floors, threads, a.quick),
                    **goals_by_peers(row, found),
                    "found": found,
                })
    return {"quick": a.quick, "runs": a.runs, "seed": a.seed, "floors": floors, "rows": rows}


def runtimes(row):
    return {p: f["median"] for p, f in row["found"].items() if "median" in f and p not in FLOORS}


def best_peer(row):
    """The fastest other runtime, and how ramie's figure compares with it."""
    medians = runtimes(row)
    ours = medians.pop("ramie", None)
    if not medians or ours is None:
        return None, None
    best = min(medians, key=medians.get)
    return best, ours / max(medians[best], 1e-9)


def number(v):
    if v == 0:
        return "0"
    if v >= 99_950:
        return f"{v / 1000:.0f}k"
    if v >= 99.95:
        return f"{v:.0f}"
    return f"{v:.1f}" if v >= 9.995 else f"{v:.2f}"


def times(v):
    return f"{v:.0f}×" if v >= 9.95 else f"{v:.1f}×" if v >= 1.05 else f"{v:.2f}×"


def verdict(row):
    """(mark, colour) for what ramie reached: ✓ its aim, · its must, ✗ neither."""
    ours = row["found"].get("ramie", {}).get("median")
    if ours is None or "must" not in row:
        return " ", ""
    return ("✓", "32") if ours <= row.get("aim", float("-inf")) else ("·", "33") if ours <= row["must"] else ("✗", "31")


def cell_text(row, peer):
    """The median and how it compares with ramie's, or why there is none."""
    found = row["found"].get(peer)
    if found is None:
        return ""
    if "median" not in found:
        return "failed"
    mark = "!" if "failure" in found else ""
    if peer == "ramie":
        spread = (found["high"] - found["low"]) / 2 / max(found["median"], 1e-9)
        return f"{number(found['median'])}{mark} ±{100 * spread:.0f}%"
    ours = row["found"].get("ramie", {}).get("median")
    return number(found["median"]) + mark + (f" {times(found['median'] / ours)}" if ours else "")


def shown_peers(rows):
    return [p for p in ALL if any(p in r["found"] for r in rows)]


def parts(found):
    """The rows, by what they are about: [(title, rows)]."""
    told = {"fibers": "Fibers", "io": "Sockets and files"}
    by = [(title, [r for r in found["rows"] if r["part"] == part]) for part, title in told.items()]
    return [(title, rows) for title, rows in by if rows]


def fastest(row):
    medians = runtimes(row)
    return min(medians, key=medians.get, default=None)


def lines_of(rows):
    """Rows of texts for both tables: title, workers, a cell for each peer, ratio, goals, and the row itself."""
    for row in rows:
        _, ratio = best_peer(row)
        yield (
            [f"{row['title']}, {row['unit']}", str(row["workers"])],
            {p: cell_text(row, p) for p in shown_peers(rows)},
            ["" if ratio is None else f"{ratio:.2f}"] + [number(row[g]) if g in row else "" for g in ("must", "aim")],
            row,
        )


def terminal_table(rows, paint):
    peers = shown_peers(rows)
    lines = list(lines_of(rows))
    wide = max([len(front[0]) for front, *_ in lines] + [9])
    widths = {p: max([len(cells[p]) for _, cells, *_ in lines] + [len(ALL[p])]) for p in peers}
    head = f"{'':{wide}} w  " + "  ".join(f"{ALL[p]:>{widths[p]}}" for p in peers)
    text = [paint(head + "   ÷best     must      aim", "1")]
    for front, cells, back, row in lines:
        best, (mark, colour) = fastest(row), verdict(row)
        middle = "  ".join(paint(f"{cells[p]:>{widths[p]}}", "1;32" if p == best else "") for p in peers)
        text.append(f"{front[0]:{wide}} {front[1]}  {middle}  {back[0]:>6}  {back[1]:>7}  {back[2]:>7} {paint(mark, colour)}")
    return text


def terminal(found):
    colours = sys.stdout.isatty()
    paint = lambda text, code: f"\033[{code}m{text}\033[0m" if colours and code else text
    text = [floor_line(found), ""]
    for _, rows in parts(found):
        text += [*terminal_table(rows, paint), ""]
    text.append("Medians; × is a peer's figure over ramie's; ÷best is ramie's over the best peer's (under 1: ramie leads).")
    text.append("must and aim are scaled by this run's floors: ✓ aim reached, · must reached, ✗ not yet. w: workers.")
    if neighbours_line(found):
        text.append(paint(neighbours_line(found), "31"))
    return "\n".join(text)


def floor_line(found):
    told = [f"{f['title']} {number(f['median'])} {f['unit']}" for f in found["floors"].values() if "median" in f]
    lines, line = [], ""
    for t in told:
        if line and len(line) + len(t) > 110:
            lines.append(line)
            line = ""
        line += (" · " if line else "") + t
    return "\n".join([*lines, line])


def machine_line(found):
    m = found["machine"]
    return f"{m['cores']} cores of {m['processor']}, {m['system']}, kernel {m['kernel']}"


def neighbours_line(found):
    """A warning, if somebody else kept the machine busy."""
    share = found["machine"]["others_percent"]
    if found["machine"]["weather"]:
        return f"Beside {found['machine']['weather']} busy foreign processes (--weather); others than ramie and its peers took {share} % of the machine."
    return f"Others took {share} % of the machine meanwhile: don't trust these figures." if share >= 10 else ""


def versions_line(found):
    return ", ".join(f"{ALL[p]} {v}" if p not in FLOORS else v for p, v in found["versions"].items() if v)


def rounds_of(found):
    rounds = "one round" if found["runs"] == 1 else f"medians of {found['runs']} interleaved rounds"
    return rounds + (", small sizes (--quick)" if found["quick"] else "")


def table(rows):
    peers = shown_peers(rows)
    text = [
        "| | w | " + " | ".join(ALL[p] for p in peers) + " | ÷ best peer | must | aim | |",
        "|---|---|" + "---:|" * (len(peers) + 3) + "---|",
    ]
    for front, cells, back, row in lines_of(rows):
        best = fastest(row)
        middle = [f"**{cells[p]}**" if p == best else cells[p] for p in peers]
        text.append("| " + " | ".join([*front, *middle, *back, verdict(row)[0].strip()]) + " |")
    return text


def tables(found):
    """A table for each part; if there is but one it needs no title."""
    all_parts = parts(found)
    text = []
    for title, rows in all_parts:
        text += [*([f"**{title}**", ""] if len(all_parts) > 1 else []), *table(rows), ""]
    return text[:-1]


def circumstances(found):
    m = found["machine"]
    return [
        f"Written by `tools/bench{' --quick' if found['quick'] else ''}`; {m['date']}, commit {m['commit']}.",
        f"{machine_line(found)}; {m['compiler']}.",
        f"{versions_line(found)}.",
        f"{rounds_of(found)[0].upper()}{rounds_of(found)[1:]} (seed {found['seed']}); lower is better everywhere.",
        *([f"**{neighbours_line(found)}**"] if neighbours_line(found) else []),
    ]


def renewed(page, found):
    """A page whose part between the two marks is this run."""
    begin, end = "<!-- tools/bench writes from here -->\n", "<!-- to here -->"
    head, rest = page.split(begin)
    text = "\n".join([*circumstances(found), "", "![How much longer the others take](../bench/results/latest.svg)", "", *tables(found)])
    return head + begin + text + "\n" + end + rest.split(end)[1]


def markdown(found):
    text = [
        "# ramie and its peers",
        "",
        *circumstances(found),
        "",
        "![How much longer the others take](latest.svg)",
        "",
        *tables(found),
        "",
        "× is a peer's figure over ramie's; ± half the distance of ramie's quartiles; bold the best. w: workers. must and aim "
        "are the project's goals, scaled by the floors of this run: ✓ aim reached, · must reached, ✗ not yet.",
        "",
        "| floor | median | |",
        "|---|---:|---|",
    ]
    text += [f"| {f['title']} | {number(f['median'])} | {f['unit']} |" for f in found["floors"].values() if "median" in f]
    failures = [
        f"- {ALL[p]}, {r['title']}, {r['workers']} workers: {f['failure']}"
        for r in found["rows"] for p, f in r["found"].items() if "failure" in f
    ]
    if failures:
        text += ["", "Failed:", "", *failures]
    return "\n".join(text) + "\n"
