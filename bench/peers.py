"""The programs that td is compared with: how each is run, and how the times it prints are read.

Output that is not as expected ends the comparison with what came: nothing is guessed. All times are in seconds.
"""
import collections
import glob
import json
import os
import re
import shutil
import subprocess
import sys


class Unexpected(Exception):
    """Output that cannot be understood."""


def said(command, env, folder=None):
    """What a command prints; an end other than 0 is an error that shows its last words."""
    run = subprocess.run(command, env=env, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode != 0:
        raise Unexpected(f"{' '.join(command)}: exit code {run.returncode}\n{run.stdout[-2000:]}")
    return run.stdout


def shown(command):
    """A command as it is kept: where programs and files lie is nobody's business."""
    return " ".join(os.path.basename(word) if os.sep in word else word for word in command)


def found(pattern, text, count, command):
    """All matches of a pattern, which must be so many; numbers as floats."""
    matches = re.findall(pattern, text, re.MULTILINE)
    if len(matches) != count:
        raise Unexpected(f"{' '.join(command)}: {len(matches)} lines like {pattern!r}, expected {count}\n"
                         f"{text[-2000:]}")
    return [tuple(map(float, m)) if isinstance(m, tuple) else float(m) for m in matches]


# what: "mttkrp" (all modes), "iteration", "build" or "read"; values: of one run, in seconds; statistic: "median" of
# values that are of single iterations or runs, or "mean" where the program prints nothing finer; side: whose column.
Sample = collections.namedtuple("Sample", "what values statistic command side")


class Peer:
    """A program that fits a ktensor, and what its runs tell."""

    name = ""
    version = "(version unknown)"

    def __init__(self, env):
        self.env = env
        self.threads = env["OMP_NUM_THREADS"]

    def there(self):
        raise NotImplementedError

    def binary(self, text):
        """The peer's own file of a tensor, so that text is parsed once; nothing if it has none."""

    def convert(self, replica, shuffled, binary):
        """Makes it from text."""

    def sweeps(self, replica, text, rank, iterations):
        """Yields the samples of a run of CP-ALS, whose first iteration is left out."""
        raise NotImplementedError

    def once(self, replica, text):
        """Yields the samples that do not depend on a rank."""
        return []

    def sample(self, what, values, command, statistic="median", side=None):
        return Sample(what, list(values), statistic, shown(command), side or self.name)


class Program(Peer):
    """A peer that is one program, which a variable names, or else PATH."""

    variable = program = ""

    def there(self):
        self.program = os.environ.get(self.variable) or shutil.which(self.name.lower()) or ""
        return os.access(self.program, os.X_OK)


class Alto(Peer):
    """ALTO (Helal and others, ICS 2021): two builds, for at most 64 and at most 128 bits of indices."""

    name = "ALTO"

    def there(self):
        if not all(os.access(self.program(bits), os.X_OK) for bits in (64, 128)):
            return False
        said_version = re.search(r"version (\S+)", said([self.program(64), "-v"], self.env))
        self.version = said_version.group(1) if said_version else self.version
        return True

    @staticmethod
    def program(bits):
        return os.environ.get("TD_BENCH_ALTO64" if bits <= 64 else "TD_BENCH_ALTO128", "")

    def binary(self, text):
        return text.removesuffix(".tns") + ".alto"

    def convert(self, replica, shuffled, binary):
        program, folder = self.program(replica.index_bits()), binary + ".d" # it chooses the file's name itself
        os.makedirs(folder, exist_ok=True)
        said([program, "-i", os.path.abspath(shuffled), "-r", "1", "-m", "1", "-f", "1"], self.env, folder)
        made = glob.glob(os.path.join(folder, "*.bin"))
        if len(made) != 1:
            raise Unexpected(f"ALTO wrote {made}, expected one .bin file")
        # Its first word is the order, whose upper half it leaves to chance: a 4-byte number is written as one of 8.
        with open(made[0], "r+b") as file:
            order = int.from_bytes(file.read(4), "little")
            if order != len(replica.dims):
                raise Unexpected(f"ALTO wrote order {order}, expected {len(replica.dims)}")
            file.write(bytes(4))
        os.rename(made[0], binary)
        os.rmdir(folder)

    def sweeps(self, replica, text, rank, iterations):
        command = [self.program(replica.index_bits()), "-b", self.binary(text), "-r", str(rank),
                   "-m", str(iterations), "-e", "1e-15"]
        out = said(command, self.env)
        times = found(r"^it: \d+\t.*time\(for MTTKRP\): ([0-9.]+) s \(([0-9.]+) s\)$", out, iterations, command)
        yield self.sample("mttkrp", [m for _, m in times[1:]], command)
        yield self.sample("iteration", [t for t, _ in times[1:]], command)
        parts = [found(rf"^ALTO: {part} time = ([0-9.]+) \(s\)$", out, 1, command)[0]
                 for part in ("setup", "Linearization", "sort", "oidx", "prtn")]
        yield self.sample("build", [sum(parts)], command)


class Splatt(Program):
    """SPLATT (Smith and others, IPDPS 2015), with a compressed copy for each mode, its fastest."""

    name = "SPLATT"
    variable = "TD_BENCH_SPLATT"

    def binary(self, text):
        return text.removesuffix(".tns") + ".splatt.bin"

    def convert(self, replica, shuffled, binary):
        said([self.program, "convert", "-t", "bin", shuffled, binary], self.env)

    def cpd(self, file, rank, iterations, copies):
        command = [self.program, "cpd", file, "-r", str(rank), "-i", str(iterations), "--tol", "0", "-t", self.threads,
                   "--nowrite", "-v", f"--csf={copies}"]
        out = said(command, self.env)
        self.version = re.search(r"splatt (v\S+ built from \S+)", out).group(1)
        return command, out

    @staticmethod
    def timer(name, out, command):
        return found(rf"^  {name} +([0-9.]+)s$", out, 1, command)[0]

    def sweeps(self, replica, text, rank, iterations):
        command, out = self.cpd(self.binary(text), rank, iterations, "all")
        times = found(r"^  its = +\d+ \(([0-9.]+)s\)", out, iterations, command)
        yield self.sample("iteration", times[1:], command)
        # It prints MTTKRP in milliseconds for each mode, and the sum over the run, of which this is the mean.
        yield self.sample("mttkrp", [self.timer("MTTKRP", out, command) / iterations], command, "mean")

    def once(self, replica, text):
        command, out = self.cpd(text, 1, 1, "one")
        yield self.sample("read", [self.timer("IO", out, command)], command)
        for copies in ("one", "all"):
            command, out = self.cpd(self.binary(text), 1, 1, copies)
            # Not timed by itself: all but reading and CP-ALS. A random start of rank 1 is in it, and takes little.
            build = self.timer("TOTAL", out, command) - self.timer("IO", out, command) - self.timer("CPD", out, command)
            yield self.sample("build", [build], command, side=f"SPLATT, {copies}")


class Genten(Program):
    """GenTen (Phipps and Kolda, SISC 2019), with its default method on each kind of tensor."""

    name = "GenTen"
    variable = "TD_BENCH_GENTEN"

    def sweeps(self, replica, text, rank, iterations):
        iterations = min(iterations, 3)
        command = [self.program, "--rank", str(rank), "--maxiters", str(iterations), "--tol", "0", "--timings",
                   "--exec-space", "openmp"]
        if replica.dense: # of random numbers that it draws itself; --warmup does not work here
            command += ["--dense", "--mttkrp-method", "phan", "--dims", str(list(replica.dims)).replace(" ", "")]
        else:
            command += ["--input", text, "--index-base", "1", "--sparse", "--warmup"]
        out = said(command, self.env)
        found(r"^Iter +(\d+): fit", out, iterations, command)
        total, mean = found(r"^\tMTTKRP total time = (\S+) seconds, average time = (\S+) seconds$", out, 1, command)[0]
        if not 0.98 < total / mean / iterations / len(replica.dims) < 1.02:
            raise Unexpected(f"{' '.join(command)}: {total} s in all and {mean} s each are not of {iterations} iterations")
        yield self.sample("mttkrp", [total / iterations], command, "mean")
        # It says one iteration more than it did.
        whole = found(rf"^CP-ALS completed {iterations + 1} iterations in (\S+) seconds$", out, 1, command)[0]
        yield self.sample("iteration", [whole / iterations], command, "mean")
        if not replica.dense:
            yield self.sample("read", found(r"^  Data import took +([0-9.]+) seconds$", out, 1, command), command)
            arrays = found(r"^Creating permutation arrays for perm \S+ method took (\S+) seconds$", out, 1, command)
            yield self.sample("build", arrays, command)


class Module(Peer):
    """A Python module on a dense tensor, in the interpreter that TD_BENCH_PYTHON names, or this one."""

    def __init__(self, env):
        super().__init__(env)
        self.python = os.environ.get("TD_BENCH_PYTHON") or sys.executable

    def there(self):
        check = [self.python, "-c", f"import {self.name.lower()}; print({self.name.lower()}.__version__)"]
        run = subprocess.run(check, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.version = run.stdout.strip()
        return run.returncode == 0

    def sweeps(self, replica, text, rank, iterations):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dense_module.py")
        command = [self.python, script, self.name.lower(), text, str(rank), str(iterations)]
        out = said(command, self.env)
        try:
            times = json.loads(out.splitlines()[-1])
        except (ValueError, IndexError) as error:
            raise Unexpected(f"{' '.join(command)}: {error}\n{out[-2000:]}") from error
        yield self.sample("mttkrp", times["mttkrp"], command)
        yield self.sample("iteration", times["iteration"], command)


class Pyttb(Module):
    name = "pyttb"


class Tensorly(Module):
    name = "TensorLy"


SPARSE = (Alto, Splatt, Genten)
DENSE = (Genten, Pyttb, Tensorly)
