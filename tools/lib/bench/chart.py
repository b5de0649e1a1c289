# SPDX-License-Identifier: BSL-1.0
"""A picture of a run: for every workload, where the peers are relative to ramie, on a logarithmic scale.

A line a workload and a mark a peer instead of bars: what matters is the distance to ramie, and thirty groups of bars
would be a carpet. It brings its own background, dark where the reader's system is.
"""
import math
import shutil
import subprocess
from html import escape

from peers import ALL
from report import best_peer, machine_line, neighbours_line, number, rounds_of, shown_peers, times, versions_line

WIDTH, LEFT, RIGHT = 1080, 318, 792  # of the picture; of the plot
OURS, BEST = 872, 1052  # right edges of the columns of figures
ROW, HEAD, SECTION = 25, 138, 34
FARTHEST = 8  # doublings to either side; what is farther is drawn at the edge as an arrow

# A colour and a shape each: neither alone has to tell them apart.
MARKS = {
    "boost": ("#e8a317", "diamond"),
    "go": ("#00a7d0", "circle"),
    "tokio": ("#d1495b", "square"),
    "tbb": ("#5b6ee1", "triangle"),
    "threads": ("#8a919c", "cross"),
    "asio": ("#b8860b", "triangle"),
    "nginx": ("#2e8b57", "square"),
    "fio": ("#7d4cc2", "diamond"),
    "epoll": ("#c2559d", "plus"),
    "uring": ("#c2559d", "cross"),
}
STYLE = """
text { font-family: 'Inter', 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif; font-size: 12.5px; fill: #24292f }
.card { fill: #ffffff; stroke: #d0d7de } .stripe { fill: #f6f8fa } .faster { fill: #d1495b; opacity: .06 }
.grid { stroke: #d8dee4 } .one { stroke: #1a7f4b; stroke-width: 2 } .reach { stroke: #b6bfc9; stroke-width: 1.2 }
.title { font-size: 22px; font-weight: 700 } .soft { fill: #6a737d } .small { font-size: 11px }
.section { font-size: 13px; font-weight: 700 } .ours { fill: #1a7f4b; font-weight: 600 } .worse { fill: #c0392b; font-weight: 600 }
.end { text-anchor: end } .middle { text-anchor: middle } .mark { stroke: #ffffff; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .card { fill: #0d1117; stroke: #30363d } .stripe { fill: #161b22 } .faster { opacity: .12 }
  .grid { stroke: #262c34 } .one { stroke: #3fb950 } .reach { stroke: #4b535d } .soft { fill: #8b949e }
  .ours { fill: #3fb950 } .worse { fill: #ff7b72 } .mark { stroke: #0d1117 }
}
"""


def text(x, y, content, css=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}">{escape(content)}</text>'


def line(x1, y1, x2, y2, css):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css}"/>'


def mark(peer, x, y, told="", arrow=0):
    colour, shape = MARKS[peer]
    r = 5.2
    points = {
        "diamond": [(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)],
        "square": [(-r + 0.6, -r + 0.6), (r - 0.6, -r + 0.6), (r - 0.6, r - 0.6), (-r + 0.6, r - 0.6)],
        "triangle": [(0, -r - 0.6), (r + 0.6, r - 0.4), (-r - 0.6, r - 0.4)],
    }.get(shape)
    if arrow:
        points = [(arrow * (r + 3), 0), (-arrow * r, -r), (-arrow * r, r)]
    told = f"<title>{escape(told)}</title>" if told else ""
    if points:
        path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in points)
        return f'<polygon points="{path}" fill="{colour}" class="mark">{told}</polygon>'
    if shape in ("cross", "plus"):
        c = r - 1
        strokes = f"M{x - c:.1f},{y - c:.1f} l{2 * c},{2 * c} M{x - c:.1f},{y + c:.1f} l{2 * c},{-2 * c}"
        if shape == "plus":
            strokes = f"M{x - r:.1f},{y:.1f} h{2 * r} M{x:.1f},{y - r:.1f} v{2 * r}"
        return f'<path d="{strokes}" stroke="{colour}" stroke-width="2.6" stroke-linecap="round">{told}</path>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{colour}" class="mark">{told}</circle>'


class Axis:
    def __init__(self, ratios):
        logs = [math.log2(r) for r in ratios] or [0]
        self.low = max(-FARTHEST, min(-1, math.floor(min(logs))))
        self.high = min(FARTHEST, max(2, math.ceil(max(logs))))

    def at(self, ratio):
        """The place of a ratio, and whether it lies beyond an edge (-1, 1) or not (0)."""
        beyond = -1 if math.log2(ratio) < self.low else 1 if math.log2(ratio) > self.high else 0
        share = (min(max(math.log2(ratio), self.low), self.high) - self.low) / (self.high - self.low)
        return LEFT + share * (RIGHT - LEFT), beyond


def ratios_of(row):
    ours = row["found"].get("ramie", {}).get("median", 0)
    if ours <= 0:
        return {}
    return {p: f["median"] / ours for p, f in row["found"].items() if p != "ramie" and f.get("median", 0) > 0}


def spread_out(places):
    """Marks that would cover each other go a little up and down."""
    clusters = []
    for peer, x in sorted(places.items(), key=lambda item: item[1]):
        if clusters and x - clusters[-1][-1][1] < 9:
            clusters[-1].append((peer, x))
        else:
            clusters.append([(peer, x)])
    shifts = {1: (0,), 2: (-4, 4), 3: (-6, 0, 6)}
    moved = {}
    for cluster in clusters:
        shift = shifts.get(len(cluster), (-6, 6))
        moved.update({peer: (x, shift[i % len(shift)]) for i, (peer, x) in enumerate(cluster)})
    return moved


def draw_row(row, axis, y):
    out = [text(LEFT - 14, y + 4.5, f"{row['title']}", "end")]
    found = {p: axis.at(r) for p, r in ratios_of(row).items()}
    places = spread_out({p: x for p, (x, _) in found.items()})
    middle = axis.at(1)[0]
    if places:
        xs = [x for x, _ in places.values()] + [middle]
        out.append(line(min(xs), y, max(xs), y, "reach"))
    for peer, (x, dy) in places.items():
        median = row["found"][peer]["median"]
        told = f"{ALL[peer]}: {number(median)} {row['unit']}, {times(ratios_of(row)[peer])} ramie's"
        out.append(mark(peer, x, y + dy, told, found[peer][1]))
    ours = row["found"].get("ramie", {}).get("median")
    if ours is not None:
        out.append(text(OURS, y + 4.5, f"{number(ours)} {row['unit'].split(' ')[0]}", "end ours"))
    best, ratio = best_peer(row)
    if best is not None:
        told = f"{ALL[best]} {number(row['found'][best]['median'])}"
        out.append(text(BEST - 52, y + 4.5, told, "end soft"))
        out.append(text(BEST, y + 4.5, times(1 / max(ratio, 1e-9)), "end worse" if ratio > 1.005 else "end"))
    return out


def draw_legend(peers, y):
    out, x = [], 28
    out.append(line(x, y - 9, x, y + 2, "one"))
    out.append(text(x + 10, y, "ramie"))
    x += 66
    for p in peers:
        if p in MARKS:
            out.append(mark(p, x, y - 4))
            out.append(text(x + 12, y, ALL[p]))
            x += 30 + 6.6 * len(ALL[p])
    out.append(text(x + 4, y, "▸ farther than the scale", "soft small"))
    return out


def draw_axis(axis, top, bottom):
    out = []
    step = 1 if axis.high - axis.low <= 9 else 2
    for power in range(axis.low, axis.high + 1):
        if power % step and power != 0:
            continue
        x = axis.at(2.0**power)[0]
        label = f"{2**power}×" if power >= 0 else f"1/{2**-power}×"
        out.append(line(x, top, x, bottom, "one" if power == 0 else "grid"))
        out.append(text(x, top - 7, label, "middle small" + ("" if power == 0 else " soft")))
        out.append(text(x, bottom + 16, label, "middle small" + ("" if power == 0 else " soft")))
    return out


def svg(found):
    rows = [r for r in found["rows"] if r["chart"] and ratios_of(r)]
    titles = {("fibers", 1): "one worker", ("fibers", 2): "two workers",
              ("io", 1): "sockets and files, one worker", ("io", 2): "sockets and files, two workers"}
    sections = [(t, [r for r in rows if (r["part"], r["workers"]) == about]) for about, t in titles.items()]
    sections = [(t, s) for t, s in sections if s]
    axis = Axis([ratio for r in rows for ratio in ratios_of(r).values()])
    bottom = HEAD + sum(SECTION + ROW * len(s) for _, s in sections) + 6
    height = bottom + 78
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        f"<style>{STYLE}</style>",
        f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="10" class="card"/>',
        text(28, 42, "ramie and its peers", "title"),
        text(28, 64, "What the others take, relative to ramie, on a logarithmic scale: right of the line they are slower, "
             "left of it faster.", "soft"),
        *draw_legend(shown_peers(rows), 94),
        text(OURS, HEAD - 7, "ramie", "end small ours"),
        text(BEST, HEAD - 7, "best peer, its ratio", "end small soft"),
    ]
    y = HEAD
    body = []
    for title, section in sections:
        body.append(text(28, y + 22, title, "section"))
        y += SECTION
        for i, row in enumerate(section):
            if i % 2 == 0:
                out.append(f'<rect x="20" y="{y}" width="{WIDTH - 40}" height="{ROW}" rx="4" class="stripe"/>')
            body += draw_row(row, axis, y + ROW / 2)
            y += ROW
    one = axis.at(1)[0]
    out.append(f'<rect x="{LEFT}" y="{HEAD}" width="{one - LEFT:.1f}" height="{bottom - HEAD}" class="faster"/>')
    out += draw_axis(axis, HEAD, bottom) + body
    m = found["machine"]
    out.append(text(28, height - 34, f"{machine_line(found)}; {rounds_of(found)}; {m['date']}, commit {m['commit']}", "soft small"))
    out.append(text(28, height - 17, versions_line(found), "soft small"))
    out.append(text(WIDTH - 28, 42, neighbours_line(found), "end small worse"))
    return "\n".join([*out, "</svg>"]) + "\n"


def png(path):
    """The same as a PNG beside it, where there is something that can draw it."""
    if shutil.which("rsvg-convert"):
        subprocess.run(["rsvg-convert", "--zoom", "2", path, "-o", path.removesuffix(".svg") + ".png"], check=False)
