"""Puts libtd into the wheel: the one that the environment variable TD_LIBRARY names, the one of the prefix that this folder
was installed into, or, in td's source tree, one that CMake builds. libtd_cuda comes along where it lies beside it."""
import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70
    from wheel.bdist_wheel import bdist_wheel

HERE = pathlib.Path(__file__).resolve().parent
ABI = re.search(r"^TD_ABI_VERSION = (\d+)$", (HERE / "src/td/_abi.py").read_text(), re.M)[1]


def installed_library():
    """The library of <prefix>, if this folder is <prefix>/share/td/python."""
    if HERE.parts[-3:] != ("share", "td", "python"):
        return None
    lib = HERE.parents[2] / "lib"
    folders = [lib, HERE.parents[2] / "lib64", *sorted(lib.glob("*-linux-*"))]
    return next((f / f"libtd.so.{ABI}" for f in folders if (f / f"libtd.so.{ABI}").exists()), None)


def built_library(folder):
    """A library built from the source tree that this folder is in. CMake's own variables, as in CMAKE_GENERATOR and
    CMAKE_BUILD_PARALLEL_LEVEL, and TD_CMAKE_ARGUMENTS say how."""
    source = HERE.parents[1]
    if not (source / "include/td/td.h").exists():
        raise SystemExit("libtd was not found: set TD_LIBRARY to the path of libtd.so, which the wheel is to carry")
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(len(os.sched_getaffinity(0))))
    extra = os.environ.get("TD_CMAKE_ARGUMENTS", "").split()
    off = [f"-DTD_BUILD_{part}=OFF" for part in ("CLI", "TESTS", "EXAMPLES")]
    subprocess.run(["cmake", "-S", source, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", *off, *extra], check=True)
    targets = subprocess.run(["cmake", "--build", folder, "--target", "help"], check=True, capture_output=True, text=True)
    cuda = ["td_cuda"] if re.search(r"\btd_cuda\b", targets.stdout) else []
    subprocess.run(["cmake", "--build", folder, "--target", "td", *cuda], check=True)
    return next(pathlib.Path(folder).rglob(f"libtd.so.{ABI}"))


class WithLibrary(build_py):
    def run(self):
        super().run()
        if getattr(self, "editable_mode", False):
            return  # td is then found by TD_LIBRARY, or where the system finds it
        chosen = os.environ.get("TD_LIBRARY")
        build = pathlib.Path(self.get_finalized_command("build").build_temp).resolve()
        library = pathlib.Path(chosen) if chosen else installed_library() or built_library(build)
        cuda = library.resolve().with_name(f"libtd_cuda.so.{ABI}")
        package = pathlib.Path(self.build_lib) / "td"
        shutil.copyfile(library, package / f"libtd.so.{ABI}")
        if cuda.exists():
            shutil.copyfile(cuda, package / cuda.name)
        licence = next(folder / "LICENSE" for folder in (HERE, HERE.parents[1]) if (folder / "LICENSE").exists())
        shutil.copyfile(licence, package / "LICENSE")


class AnyPython(bdist_wheel):
    """For every Python of one platform: nothing is compiled against Python."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class HasLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": WithLibrary, "bdist_wheel": AnyPython}, distclass=HasLibrary)
