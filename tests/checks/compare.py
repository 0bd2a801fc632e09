#!/usr/bin/env python3
"""Stands programs that print like ALTO and GenTen in for peers, and works out the numbers of a table by hand."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
import peers
import report
from replicas import Replica

ENV = dict(os.environ, OMP_NUM_THREADS="1")
SMALL = Replica("small", "", (3, 2, 2), 3)
ALTO = """Dimensions = [3 X 2 X 2]
ALTO: setup time = 0.000100 (s)
ALTO: Linearization time = 0.001000 (s)
ALTO: sort time = 0.020000 (s)
ALTO: oidx time = 0.000000 (s)
ALTO: prtn time = 0.000900 (s)
it: 0\t fit: 0.1\t fit-delta: 0.1\ttime(for MTTKRP): 0.9000 s (0.8000 s)
it: 1\t fit: 0.2\t fit-delta: 0.1\ttime(for MTTKRP): 0.0200 s (0.0100 s)
it: 2\t fit: 0.3\t fit-delta: 0.1\ttime(for MTTKRP): 0.0400 s (0.0300 s)
"""
GENTEN = """  Data import took  0.500 seconds
Creating permutation arrays for perm MTTKRP/hess-vec method took 7.00e-02 seconds
Iter   1: fit =  1.0e-01 fitdelta =  1.0e-01
Iter   2: fit =  2.0e-01 fitdelta =  1.0e-01
Iter   3: fit =  3.0e-01 fitdelta =  1.0e-01
CP-ALS completed 4 iterations in 6.00e-01 seconds
\tMTTKRP total time = 4.50e-01 seconds, average time = 5.00e-02 seconds
"""


class Printing(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def program(self, text, code=0):
        path = os.path.join(self.folder.name, "peer")
        with open(path, "w", encoding="utf-8") as out:
            out.write(f"#!/bin/sh\ncat <<'END'\n{text}END\nexit {code}\n")
        os.chmod(path, 0o755)
        return path

    def samples(self, make, variables, text, code=0):
        for variable in variables:
            os.environ[variable] = self.program(text, code)
        peer = make(ENV)
        self.assertTrue(peer.there())
        return {s.what: s.values for s in peer.sweeps(SMALL, "small.tns", 4, 3)}

    def alto(self, text, code=0):
        return self.samples(peers.Alto, ("TD_BENCH_ALTO64", "TD_BENCH_ALTO128"), text, code)

    def genten(self, text):
        return self.samples(peers.Genten, ("TD_BENCH_GENTEN",), text)

    def test_times_are_read_and_the_first_iteration_left_out(self):
        came = self.alto(ALTO)
        self.assertEqual(came["mttkrp"], [0.01, 0.03])
        self.assertEqual(came["iteration"], [0.02, 0.04])
        self.assertAlmostEqual(came["build"][0], 0.022, delta=1e-12)

    def test_means_are_over_iterations(self):
        came = self.genten(GENTEN)
        self.assertAlmostEqual(came["mttkrp"][0], 0.15, delta=1e-12)
        self.assertAlmostEqual(came["iteration"][0], 0.2, delta=1e-12)
        self.assertEqual((came["read"], came["build"]), ([0.5], [0.07]))

    def test_other_output_is_refused(self):
        for old, new in (("it: 2", "stopped"), ("sort time", "sorting"), ("0.0300 s)", "nan s)"), ("(0.0100 s)", "")):
            with self.assertRaises(peers.Unexpected, msg=new):
                self.alto(ALTO.replace(old, new))
        for old, new in (("Iter   3", "Iter"), ("completed 4", "completed 3"), ("average time = 5", "average time = 9")):
            with self.assertRaises(peers.Unexpected, msg=new):
                self.genten(GENTEN.replace(old, new))

    def test_a_failing_program_is_refused(self):
        with self.assertRaisesRegex(peers.Unexpected, "exit code 3"):
            peers.said([self.program("words\n", 3)], ENV)


class Table(unittest.TestCase):
    FACTS = {"commit": "c", "cpu": "a CPU", "threads": 2, "td": "td 1", "time": "2026-01-02T03:04:05", "version": "1",
             "statistic": "median", "command": "run"}
    MACHINE = {"read_bytes_per_second": 1e9, "write_bytes_per_second": 1e9, "copy_bytes_per_second": 1e9,
               "f64_operations_per_second": 1e9}

    def written(self, *lines):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "raw.jsonl")
            with open(path, "w", encoding="utf-8") as out:
                out.writelines(json.dumps(dict(self.FACTS, **line)) + "\n" for line in lines)
            with open(report.write(path, folder), encoding="utf-8") as table:
                return table.read()

    def line(self, side, rank, values, tensor="uber", what="mttkrp", **more):
        if side == "td" and what == "mttkrp":
            more = {"machine": self.MACHINE, "modes": [0.004, 0.006], "floor_bytes": [2e6, 2e6],
                    "floor_operations": [0, 3e6], "entries": 1000, **more}
        return dict(side=side, rank=rank, values=values, tensor=tensor, what=what, **more)

    def test_medians_ratios_and_means(self):
        table = self.written(
            self.line("td", 16, [0.010]), self.line("ALTO", 16, [0.030, 0.010]), self.line("ALTO", 16, [0.020]),
            self.line("SPLATT", 16, [0.050], statistic="mean"),
            self.line("td", 16, [0.010], tensor="nips"), self.line("ALTO", 16, [0.080], tensor="nips"),
            self.line("td", 32, [0.015]), self.line("ALTO", 32, [0.045]))
        # The median of 30, 10, 20 is 20: twice td's. A floor of 2 ms, and of the longer of 2 and 3 ms.
        self.assertIn("| uber | 16 | 10.0 | 4.0 / 6.0 | 5.0 | 0.50 | 20.0 | 50.0 | 2.00 |", table)
        self.assertIn("| nips | 16 | 10.0 | 4.0 / 6.0 | 5.0 | 0.50 | 80.0 | – | 8.00 |", table)
        self.assertIn("SPLATT (mean)", table)
        self.assertIn("rank 16: **4.00** times as fast as the best peer over 2 tensors; least 2.00", table)
        # A column at rank 32 takes 15/32 of a millisecond, at rank 16 10/16.
        self.assertIn("| uber | td | 0.75 |", table)

    def test_lines_of_two_versions_are_refused(self):
        with self.assertRaisesRegex(report.Mixed, "different commit: c, d"):
            self.written(self.line("td", 16, [0.01]), self.line("td", 16, [0.01], commit="d"))

    def test_building_and_reading(self):
        table = self.written(
            self.line("td", 16, [0.010]),
            self.line("td", None, [0.002], what="build", sweeps=1.5, peak=3e6),
            self.line("ALTO", None, [0.003], what="build"),
            self.line("td", None, [0.5], what="read", file_bytes=1e8),
            self.line("td, .tdb", None, [0.01], what="read", file_bytes=5e7),
            self.line("SPLATT", None, [1.0], what="read"))
        self.assertIn("| uber | 2.0 | 1.50 | 2000 | 3 | 3.0 | 1.50 |", table)
        self.assertIn("| uber | 200 | 5000 | 100 | 2.00 |", table)


if __name__ == "__main__":
    unittest.main()
