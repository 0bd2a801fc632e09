"""Makes the table of a comparison from its raw lines: medians, and how many times as fast as the best peer td is."""
import collections
import datetime
import json
import math
import os
import re

from replicas import REPLICAS


class Mixed(Exception):
    """Lines that are not of one comparison."""


def median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def milliseconds(seconds):
    return "–" if seconds is None else f"{1e3 * seconds:.1f}" if seconds < 0.1 else f"{1e3 * seconds:.0f}"


def ratio(number):
    return "–" if number is None else f"{number:.2f}"


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


class Raw:
    """The lines of a comparison, which must be of one td, machine and number of threads."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as lines:
            self.lines = [json.loads(line) for line in lines]
        if not self.lines:
            raise Mixed(f"{path}: holds no lines")
        for fact in ("commit", "cpu", "threads", "td"):
            came = sorted({str(line[fact]) for line in self.lines})
            if len(came) > 1:
                raise Mixed(f"{path}: lines of different {fact}: {', '.join(came)}; expected one comparison a file")
        self.facts = self.lines[0]
        self.samples = collections.defaultdict(list)
        for line in self.lines:
            self.samples[line["tensor"], line["what"], line["rank"], line["side"]].append(line)
        measured = [line["machine"] for line in self.lines if "machine" in line]
        self.machine = {key: median([one[key] for one in measured]) for key in (measured[0] if measured else ())
                        if key.endswith("per_second")}

    def value(self, tensor, what, rank, side):
        lines = self.samples.get((tensor, what, rank, side))
        return median([v for line in lines for v in line["values"]]) if lines else None

    def last(self, tensor, what, rank, side):
        return self.samples[tensor, what, rank, side][-1]

    def tensors(self, what, dense):
        return [r.name for r in REPLICAS if r.dense == dense and any(k[:2] == (r.name, what) for k in self.samples)]

    def sides(self, tensors, what):
        """Peers that were measured, in order of their first line."""
        found = dict.fromkeys(k[3] for k in self.samples if k[0] in tensors and k[1] == what)
        return [side for side in found if not side.startswith("td")]

    def heading(self, tensors, what, side):
        """The side's name, and whether what it prints is no median."""
        means = any(line["statistic"] == "mean" for line in self.lines
                    if (line["what"], line["side"]) == (what, side) and line["tensor"] in tensors)
        return f"{side} (mean)" if means else side

    def ranks(self, tensors, what):
        return sorted({k[2] for k in self.samples if k[0] in tensors and k[1] == what and k[2] is not None})

    def best(self, tensor, what, rank, sides):
        values = [v for v in (self.value(tensor, what, rank, side) for side in sides) if v is not None]
        return min(values) if values else None

    def times_as_fast(self, tensor, what, rank, sides):
        td, best = self.value(tensor, what, rank, "td"), self.best(tensor, what, rank, sides)
        return best / td if td and best else None


def side_by_side(raw, what, dense, ranks, note=lambda raw, tensor, rank: [], columns=()):
    """A row for each tensor and rank; below, geometric means over tensors."""
    tensors = raw.tensors(what, dense)
    sides = raw.sides(tensors, what)
    rows = []
    means = []
    for rank in ranks if ranks is not None else raw.ranks(tensors, what):
        ratios = []
        for tensor in tensors:
            td = raw.value(tensor, what, rank, "td")
            if td is None:
                continue
            times = raw.times_as_fast(tensor, what, rank, sides)
            ratios += [times] if times else []
            rows.append([tensor, *([] if rank is None else [str(rank)]), milliseconds(td), *note(raw, tensor, rank),
                         *[milliseconds(raw.value(tensor, what, rank, side)) for side in sides], ratio(times)])
        if len(ratios) > 1:
            at = "" if rank is None else f" at rank {rank}"
            means.append(f"Geometric mean{at}: **{geometric_mean(ratios):.2f}** "
                         f"times as fast as the best peer over {len(ratios)} tensors; least {min(ratios):.2f}.")
    if not rows:
        return ""
    header = ["tensor", *([] if ranks == [None] else ["rank"]), "td", *columns,
              *[raw.heading(tensors, what, side) for side in sides], "times as fast as the best peer"]
    return markdown(header, rows) + "\n" + "  \n".join(means) + ("\n" if means else "")


def floor_note(raw, tensor, rank):
    lines = raw.samples[tensor, "mttkrp", rank, "td"]
    measured = raw.value(tensor, "mttkrp", rank, "td")
    bandwidth, rate = raw.machine["read_bytes_per_second"], raw.machine["f64_operations_per_second"]
    floor = sum(max(bytes_ / bandwidth, operations / rate)
                for bytes_, operations in zip(lines[-1]["floor_bytes"], lines[-1]["floor_operations"]))
    modes = " / ".join(milliseconds(median(of_mode)) for of_mode in zip(*[line["modes"] for line in lines]))
    return [modes, milliseconds(floor), ratio(floor / measured)]


def every_rank(raw):
    tensors = raw.tensors("mttkrp", False)
    sides = ["td", *raw.sides(tensors, "mttkrp")]
    ranks = [r for r in raw.ranks(tensors, "mttkrp") if r != 16]
    rows = []
    for tensor in tensors:
        for side in sides:
            base = raw.value(tensor, "mttkrp", 16, side)
            values = [raw.value(tensor, "mttkrp", rank, side) for rank in ranks]
            if base and any(values):
                rows.append([tensor, side, *[ratio(v and v / rank / (base / 16)) for v, rank in zip(values, ranks)]])
    return markdown(["tensor", "side", *[f"R = {r}" for r in ranks]], rows) if rows and ranks else ""


def build_note(raw, tensor, _):
    line = raw.last(tensor, "build", None, "td")
    entries = next((l["entries"] for l in raw.lines if l["tensor"] == tensor and "entries" in l), None)
    value = raw.value(tensor, "build", None, "td")
    peak = line["peak"]
    return [ratio(line["sweeps"]), "–" if entries is None else f"{1e9 * value / entries:.0f}",
            "–" if peak is None else f"{peak / 1e6:.0f}"]


def reading(raw):
    tensors = raw.tensors("read", False)
    sides = raw.sides(tensors, "read")
    rows = []
    for tensor in tensors:
        if raw.value(tensor, "read", None, "td") is None:
            continue
        size = {side: raw.last(tensor, "read", None, side)["file_bytes"] for side in ("td", "td, .tdb")}

        def speed(side, of=None, tensor=tensor, size=size):
            seconds = raw.value(tensor, "read", None, side)
            return "–" if seconds is None else f"{size[of or side] / seconds / 1e6:.0f}"

        rows.append([tensor, speed("td"), speed("td, .tdb"), *[speed(side, "td") for side in sides],
                     ratio(raw.times_as_fast(tensor, "read", None, sides))])
    return markdown(["tensor", "td, text", "td, .tdb", *sides, "times as fast as the best peer"], rows) if rows else ""


def machine_figures(raw):
    if not raw.machine:
        return "not measured"
    read, write, copy, rate = (raw.machine[f"{name}_per_second"] / 1e9 for name in
                               ("read_bytes", "write_bytes", "copy_bytes", "f64_operations"))
    return (f"read {read:.1f} GB/s, write {write:.1f} GB/s, copy {copy:.1f} GB/s, multiply-add {rate:.0f} GFLOP/s f64 "
            "(`td bench`, medians)")


def commands(raw):
    """One command of each side, kind and kind of tensor, for people who want to run it by hand."""
    seen = {}
    for line in raw.lines:
        seen.setdefault((line["side"], line["what"], line["tensor"] == "dense"), line["command"])
    return sorted(set(seen.values()))


def sections(raw):
    yield ("MTTKRP of all modes, ms", side_by_side(raw, "mttkrp", False, (16, 32), floor_note,
                                                    ("a mode", "floor", "floor/td")))
    yield "MTTKRP at other ranks, ms", side_by_side(
        raw, "mttkrp", False, [r for r in raw.ranks(raw.tensors("mttkrp", False), "mttkrp") if r not in (16, 32)],
        floor_note, ("a mode", "floor", "floor/td"))
    yield "MTTKRP, time a column relative to rank 16", every_rank(raw)
    yield "One iteration of CP-ALS, ms", side_by_side(raw, "iteration", False, None)
    yield "Building from coordinates, ms", side_by_side(raw, "build", False, [None], build_note,
                                                        ("sweeps at R = 32", "ns an entry", "peak MB"))
    yield "Reading, MB/s", reading(raw)
    yield "Dense 200 x 150 x 12 x 250, MTTKRP of all modes, ms", side_by_side(
        raw, "mttkrp", True, None, floor_note, ("a mode", "floor", "floor/td"))
    yield "Dense, one iteration of CP-ALS, ms", side_by_side(raw, "iteration", True, None)


def text(raw):
    facts = raw.facts
    dates = sorted(line["time"][:10] for line in raw.lines)
    versions = sorted({f"{line['side'].split(',')[0]} {line['version']}" for line in raw.lines if line["side"] != "td"
                       and not line["side"].startswith("td,")})
    out = [f"# td and its peers, {dates[-1]}\n",
           f"{facts['cpu']}, {facts['threads']} threads; {machine_figures(raw)}.",
           f"{facts['td']}, commit {facts['commit']}. Peers: {'; '.join(versions) or 'none'}.",
           "Medians; *times as fast* is the time of the fastest peer over td's. bench/README.md says what each number "
           "means.\n"]
    for title, table in sections(raw):
        if table:
            out += [f"## {title}\n", table]
    out += ["## Commands\n", "`OMP_PROC_BIND=true OMP_PLACES=cores`; files in SCRATCH by `bench/compare SCRATCH --prepare`; folders are left out.\n", "```"]
    return "\n".join(out + commands(raw) + ["```", ""])


def write(path, folder):
    """Writes the table of a raw file into the folder, named by date and machine, and gives its name."""
    raw = Raw(path)
    machine = re.sub(r"[^A-Za-z0-9]+", "-", raw.facts["cpu"]).strip("-")
    os.makedirs(folder, exist_ok=True)
    name = os.path.join(folder, f"{datetime.date.today().isoformat()}-{machine}-{raw.facts['threads']}.md")
    with open(name, "w", encoding="utf-8") as out:
        out.write(text(raw))
    return name
