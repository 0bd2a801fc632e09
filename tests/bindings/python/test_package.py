"""The package's documentation: examples that run, and all that a function takes."""
import doctest
import importlib
import inspect
import os
import pkgutil
import re

import numpy as np
import pytest

import td
from td import _report

MODULES = ["td", *(f"td.{m.name}" for m in pkgutil.iter_modules(td.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name), extraglobs={"td": td, "np": np}).failed == 0


def test_the_page_for_python_users():
    page = os.environ.get("TD_PAGE")
    if not page:
        pytest.skip("TD_PAGE does not say where docs/python.md is")
    ran = doctest.testfile(page, module_relative=False)
    assert ran.failed == 0 and ran.attempted > 15


def public():
    for name in td.__all__:
        thing = getattr(td, name)
        yield name, thing
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    yield f"{name}.{member}", value.fget if isinstance(value, property) else value


@pytest.mark.parametrize("name, thing", list(public()), ids=lambda x: x if isinstance(x, str) else "")
def test_everything_public_is_documented(name, thing):
    text = inspect.getdoc(thing)
    assert text and text[0].isupper() or name in ("Option",), f"{name} has no documentation"
    if not inspect.isfunction(thing):
        return
    documented = re.findall(r"^\*{0,2}(\w+)(?:,? .*)?(?: : .*)?$", text.partition("Parameters\n-")[2].partition("Returns\n-")[0],
                            flags=re.M)
    for parameter in inspect.signature(thing).parameters:
        if parameter == "self" or (name, parameter) == ("has_feature", "name"):
            continue
        assert parameter in documented, f"{name} does not say what {parameter} is"
    for annotated in inspect.signature(thing).parameters.values():
        assert annotated.name == "self" or annotated.annotation is not inspect.Parameter.empty


def test_the_reports_keys_are_those_of_the_header():
    header = os.environ.get("TD_HEADER")
    if not header:
        pytest.skip("TD_HEADER does not say where td.h is")
    with open(header) as f:
        text = f.read()
    for function, keys in (("i64", _report.FACTS), ("f64", _report.FACTS), ("str", _report.FACTS),
                           ("series", _report.SERIES)):
        comment = re.search(r"/\*\*((?:(?!\*/).)*)\*/\s*TD_API td_status td_report_get_" + function, text, re.S)[1]
        comment = re.sub(r"\([^()]*\)", "", comment)  # what values mean, and other functions' names
        if function == "f64":
            comment = re.sub(r'with option "solve"', "", comment)
        for key in re.findall(r'"([a-z_.]+)"', comment):
            assert key in keys, f"td_report_get_{function}: {key} is not pickled"
