"""The bill of materials is JSON with what SPDX 2.3 asks for, and names everything that the given files link.
usage: sbom.py TD_SPDX_JSON FILE..."""

import json
import re
import subprocess
import sys

PACKAGE_OF = [(r"libgomp\b", "libgomp"), (r"libstdc\+\+", "libstdc++"),
              (r"libgcc_s\b", "libstdc++"), (r"lib(c|m|dl|pthread)\.so|ld-linux|libmvec", "glibc"), (r"libfmt\b", "fmt"),
              (r"libhwy\b", "highway"), (r"libz\b", "zlib"), (r"libtd\b", "td"), (r"libcu", "cuda")]

with open(sys.argv[1], encoding="utf-8") as file:
    bill = json.load(file)
for key in ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages"):
    assert bill[key], key
packages = {package["name"]: package for package in bill["packages"]}
ids = {package["SPDXID"] for package in bill["packages"]} | {bill["SPDXID"]}
assert len(ids) == len(packages) + 1, "an identifier comes twice"
for package in packages.values():
    assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package["SPDXID"]), package
    assert package["versionInfo"] and package["licenseDeclared"], package
for relation in bill["relationships"]:
    assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= ids, relation
for name in ("fmt", "zlib", "highway"):
    assert re.match(r"\d", packages[name]["versionInfo"]), packages[name]

seen = 0
for path in sys.argv[2:]:
    dynamic = subprocess.run(["readelf", "-dW", path], check=True, capture_output=True, text=True).stdout
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        owners = [package for pattern, package in PACKAGE_OF if re.match(pattern, needed)]
        assert owners and owners[0] in packages, f"{path} needs {needed}, which the bill of materials does not name"
        seen += 1
assert seen > 5, "readelf shows no libraries"
