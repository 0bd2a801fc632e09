"""^C: it ends a run between two iterations, whenever it arrives, and keeps the model."""
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import td


def interrupt_after(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


@pytest.fixture(scope="module")
def x():
    return td.tensor(np.random.default_rng(3).random((30, 30, 30)))


@pytest.mark.parametrize("progress", [None, False, lambda report: None, lambda report: time.sleep(0.001)])
def test_the_model_comes_with_the_exception(x, progress):
    for wait in (0.02, 0.05, 0.07):
        interrupt_after(wait)
        with pytest.raises(KeyboardInterrupt) as told:
            td.cpals(x, 3, tol=0, max_iters=10**6, progress=progress)
        model = told.value.model
        assert model.report.iterations >= 1 and model.report.stop_reason == "callback"
        assert model.fit(x).fit == pytest.approx(model.report.fit)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_model_is_returned_if_asked_for(x):
    interrupt_after(0.05)
    model = td.cpals(x, 3, tol=0, max_iters=10**6, interrupt="return")
    assert model.report.stop_reason == "callback"


def test_no_signal_is_lost(x):
    """At every moment of many short runs: before, within, and after the run. Each of them ends one of the runs."""
    came = 0
    for i in range(60):
        try:
            deadline = time.monotonic() + 5
            interrupt_after(0.0005 + 0.0002 * i)
            while time.monotonic() < deadline:
                td.cpals(x, 2, tol=0, max_iters=4)
        except KeyboardInterrupt:
            came += 1
    assert came == 60
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_of_the_caller(x):
    """One that only takes note lets the run go on; one that raises ends it; they run between iterations."""
    seen = []
    for number in (signal.SIGUSR1, signal.SIGALRM):
        before = signal.signal(number, lambda n, frame: seen.append((n, frame is not None)))
        try:
            threading.Timer(0.03, os.kill, (os.getpid(), number)).start()
            td.cpals(x, 3, tol=0, max_iters=10**6, max_seconds=0.2)
            assert seen.pop() == (number, True)
        finally:
            signal.signal(number, before)

    class Deadline(Exception):
        pass

    def fail(number, frame):
        raise Deadline

    before = signal.signal(signal.SIGALRM, fail)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Deadline) as told:
            td.cpals(x, 3, tol=0, max_iters=10**6)
        assert told.value.model.report.iterations >= 1
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_handler_that_progress_sets_stays(x):
    mine = []

    def progress(report):
        signal.signal(signal.SIGUSR2, lambda n, frame: mine.append(n))
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.getsignal(signal.SIGUSR2)
    try:
        td.cpals(x, 2, max_iters=2, progress=progress)
        os.kill(os.getpid(), signal.SIGUSR2)
        assert mine == [signal.SIGUSR2] and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_other_threads(x):
    """A run in another thread has no part in signals, and goes on."""
    models = []
    thread = threading.Thread(target=lambda: models.append(td.cpals(x, 2, tol=0, max_iters=10**6, max_seconds=0.2)))
    thread.start()
    interrupt_after(0.05)
    with pytest.raises(KeyboardInterrupt):
        time.sleep(5)
    thread.join()
    assert models[0].report.stop_reason == "max_seconds"


@pytest.mark.parametrize("progress", ["None", "lambda report: None"])
def test_a_script_ends_as_scripts_do(progress):
    """Not with exit code 0 and an unfinished model."""
    script = textwrap.dedent(f"""
        import numpy as np, td
        x = td.tensor(np.ones((40, 40, 40)))
        print("ready", flush=True)
        td.cpals(x, 3, tol=0, max_iters=10**9, progress={progress})
        print("went on")
    """)
    child = subprocess.Popen([sys.executable, "-B", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT and out == "" and "KeyboardInterrupt" in err
    assert "td.cpals was stopped after" in err or sys.version_info < (3, 11)
