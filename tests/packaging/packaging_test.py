# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The recipes in packaging/ have the version, the dependencies and the options of the CMake files.

packaging_test.py SOURCE PROGRAM"""
import ast
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SOURCE, PROGRAM = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
PACKAGING = SOURCE / "packaging"
SPACK = PACKAGING / "spack" / "spack_repo" / "lockstep" / "packages" / "lockstep" / "package.py"
APPTAINER = PACKAGING / "apptainer" / "lockstep.def"


def text(path):
    return (SOURCE / path).read_text(encoding="utf-8")


VERSION = re.search(r"project\(Lockstep VERSION ([\d.]+)", text("CMakeLists.txt"))[1]
EASYBUILD, = (PACKAGING / "easybuild").glob("Lockstep-*.eb")

# What cmake/Dependencies.cmake finds, and its names in Spack and EasyBuild. A toolchain of EasyBuild has the MPI library.
NAMES = {
    "Threads": (None, None), "MPI": ("mpi", None), "HDF5": ("hdf5", "HDF5"), "dnnl": ("onednn", "oneDNN"),
    "yaml-cpp": ("yaml-cpp", "yaml-cpp"), "fmt": ("fmt", "fmt"), "spdlog": ("spdlog", "spdlog"), "Protobuf": ("protobuf", "protobuf"),
    "ZLIB": ("zlib-api", "zlib"), "JPEG": ("libjpeg-turbo", "libjpeg-turbo"), "PNG": ("libpng", "libpng"),
    "nlohmann_json": ("nlohmann-json", "nlohmann_json"), "CLI11": ("cli11", "CLI11"), "EIGEN3": ("eigen", "Eigen"),
    "XXHASH": ("xxhash", "xxHash"), "LIBDEFLATE": ("libdeflate", "libdeflate"),
}
TOOLS = {"cmake", "ninja", "pkgconf", "pkgconfig", "c", "cxx"}


def found_by_cmake():
    """(names, Debian packages) of what a build without tests and benchmarks needs."""
    lines = text("cmake/Dependencies.cmake").partition("if(LOCKSTEP_TESTS)")[0]
    names = set(re.findall(r"(?m)^lockstep_find\((\S+) ", lines)) | set(re.findall(r"(?m)^find_package\((\w+) REQUIRED", lines))
    names |= set(re.findall(r"(?m)^find_path\((\w+)_INCLUDE_DIR", lines))
    packages = re.findall(r'(?m)^lockstep_find\(.*?"[^"]*" "([^"]*)"', lines)
    packages += re.findall(r'(?m)^  lockstep_missing\("[^"]*" "([^"]*)"\)', lines)
    return names, {package for group in packages for package in group.split()}


def script_packages():
    """The packages that scripts/install_dependencies.sh installs without --test."""
    lines = re.search(r"(?ms)^packages=\(\n(.*?)^\)", text("scripts/install_dependencies.sh"))[1]
    return {word for line in lines.splitlines() for word in line.partition("#")[0].split()}


def paragraphs(path):
    """The paragraphs of a file of Debian's control format, as dicts."""
    found = []
    for paragraph in re.split(r"\n\n+", path.read_text(encoding="utf-8").strip()):
        fields = re.findall(r"(?m)^([A-Za-z-]+):(.*(?:\n[ \t].*)*)", paragraph)
        found.append({key: value.strip() for key, value in fields})
    return found


def packages_in(field):
    return {re.match(r"[\w.+-]+|\$\{[\w:]+\}", item.strip())[0] for item in field.split(",") if item.strip()}


def easybuild_names(kind):
    """{name: version} of a list of dependencies of the easyconfig."""
    tree = ast.parse(EASYBUILD.read_text(encoding="utf-8"))
    value, = (node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == kind)
    return {item[0]: item[1] for item in ast.literal_eval(value)}


def spack_calls(name):
    """The calls of a directive in the recipe of Spack."""
    tree = ast.parse(SPACK.read_text(encoding="utf-8"))
    recipe, = (node for node in tree.body if isinstance(node, ast.ClassDef))
    return [node.value for node in recipe.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and node.value.func.id == name]


class Recipes(unittest.TestCase):
    def test_all_have_the_version_of_the_project(self):
        self.assertRegex(text("packaging/debian/changelog"), rf"^lockstep \({re.escape(VERSION)}-\d+\) ")
        self.assertTrue(EASYBUILD.name.startswith(f"Lockstep-{VERSION}-"), EASYBUILD.name)
        self.assertIn(f"version = '{VERSION}'", EASYBUILD.read_text(encoding="utf-8"))
        self.assertIn(VERSION, [ast.literal_eval(call.args[0]) for call in spack_calls("version")])
        self.assertIn(f"image.version {VERSION}\n", APPTAINER.read_text(encoding="utf-8"))

    def test_the_citation_has_the_version(self):
        version = re.search(r"project\(Lockstep VERSION ([\d.]+)", text("CMakeLists.txt"))[1]
        self.assertIn(f"\nversion: {version}\n", text("CITATION.cff"))

    def test_options_are_those_of_cmake(self):
        known = set(re.findall(r"(?m)^(?:option|set)\((LOCKSTEP_\w+)", text("CMakeLists.txt") + text("cmake/Cuda.cmake")))
        self.assertGreater(len(known), 8)
        for path in (PACKAGING / "debian" / "rules", EASYBUILD, APPTAINER, SPACK):
            recipe = path.read_text(encoding="utf-8")
            used = set(re.findall(r"-D(LOCKSTEP_\w+)=", recipe)) | set(re.findall(r'define\w*\("(LOCKSTEP_\w+)"', recipe))
            self.assertLessEqual({"LOCKSTEP_CUDA", "LOCKSTEP_TESTS", "LOCKSTEP_BENCH"}, used, path)
            self.assertLessEqual(used, known, path)

    def test_debian_builds_with_what_cmake_and_the_script_need(self):
        source = paragraphs(PACKAGING / "debian" / "control")[0]
        build = packages_in(source["Build-Depends"])
        script = script_packages() - {"build-essential"}
        self.assertEqual(build - {"debhelper-compat", "python3"}, script)
        self.assertLessEqual(found_by_cmake()[1], build)

    def test_debian_library_needs_what_its_cmake_files_find(self):
        config = text("cmake/LockstepConfig.cmake.in")
        found = set(re.findall(r"find_dependency\((\S+?)[ )]", config)) - {"Threads"}
        of_name = {name: packages for name, packages in re.findall(r'(?m)^lockstep_find\((\S+) .*?"[^"]*" "([^"]*)"', text("cmake/Dependencies.cmake"))}
        needed = {package for name in found for package in of_name[name].split() if re.match(r"lib.*-dev$|.*1g-dev$|ocl-icd", package)}
        library, = (part for part in paragraphs(PACKAGING / "debian" / "control") if part.get("Package") == "liblockstep-dev")
        self.assertGreater(len(needed), 8)
        self.assertLessEqual(needed | {"libdeflate-dev"}, packages_in(library["Depends"]))
        # The CMake files name the program as a target, and fail where it is not installed.
        self.assertRegex(text("cmake/Install.cmake"), r"install\(TARGETS .*lockstep_program .*EXPORT")
        self.assertIn("lockstep (= ${binary:Version})", library["Depends"])

    def test_debian_library_needs_what_its_headers_include(self):
        packages = {"Eigen": "libeigen3-dev", "fmt": "libfmt-dev"}
        left, done, outside = [path for path in (SOURCE / "include").rglob("*.h")], set(), set()
        while left:
            path = left.pop()
            if path in done:
                continue
            done.add(path)
            for kind, name in re.findall(r'(?m)^#include ([<"])([^>"]+)[>"]', path.read_text(encoding="utf-8")):
                if kind == '"':
                    left += [SOURCE / "src" / name] if (SOURCE / "src" / name).exists() else []  # options.h is made by the build
                elif not name.startswith("lockstep/") and "/" in name:
                    outside.add(name.partition("/")[0])
        self.assertGreater(len(done), 100)
        self.assertEqual(outside, set(packages), "an outside library in public headers is new or gone")
        library, = (part for part in paragraphs(PACKAGING / "debian" / "control") if part.get("Package") == "liblockstep-dev")
        self.assertLessEqual(set(packages.values()), packages_in(library["Depends"]))

    def test_spack_takes_any_mpi_and_any_hdf5(self):
        specs = [ast.literal_eval(call.args[0]) for call in spack_calls("depends_on")]
        self.assertIn("mpi", specs)
        hdf5, = (spec for spec in specs if spec.startswith("hdf5"))
        self.assertNotIn("mpi", hdf5)
        self.assertIn("HDF5_IS_PARALLEL", text("cmake/Dependencies.cmake"))

    def test_spack_and_easybuild_have_all_dependencies_and_no_others(self):
        names = found_by_cmake()[0]
        self.assertEqual(names, set(NAMES), "a dependency is new or gone: add it to the recipes, and its names to this table")
        plain = [call for call in spack_calls("depends_on") if not any(word.arg == "when" for word in call.keywords)]
        spack = {re.match(r"[\w-]+", ast.literal_eval(call.args[0]))[0] for call in plain}
        self.assertEqual(spack - TOOLS, {NAMES[name][0] for name in names} - {None})
        easybuild = set(easybuild_names("dependencies")) | set(easybuild_names("builddependencies"))
        self.assertEqual({name for name in easybuild if name.lower() not in TOOLS}, {NAMES[name][1] for name in names} - {None})

    def test_easyconfigs_beside_it_are_those_that_it_uses(self):
        wanted = easybuild_names("dependencies") | easybuild_names("builddependencies")
        for path in (PACKAGING / "easybuild").glob("*.eb"):
            recipe = path.read_text(encoding="utf-8")
            name, version = (re.search(rf"(?m)^{key} = '(.*?)'", recipe)[1] for key in ("name", "version"))
            toolchain = ast.literal_eval(re.search(r"(?m)^toolchain = ({.*})", recipe)[1])
            self.assertEqual(path.name, f"{name}-{version}-{toolchain['name']}-{toolchain['version']}.eb")
            if path != EASYBUILD:
                self.assertEqual(wanted[name], version, path)
                self.assertRegex(recipe, r"(?m)^checksums = \['[0-9a-f]{64}'\]")

    def test_the_container_has_the_libraries_of_the_program(self):
        release = pathlib.Path("/etc/os-release")
        if not release.exists() or 'VERSION_ID="12"' not in release.read_text(encoding="utf-8") or not shutil.which("dpkg"):
            self.skipTest("not Debian 12, whose names of packages the definition has")
        needed = subprocess.run(["ldd", PROGRAM], check=True, capture_output=True, text=True).stdout
        direct = subprocess.run(["readelf", "-d", PROGRAM], check=True, capture_output=True, text=True).stdout
        wanted = set()
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", direct):
            path = re.search(rf"{re.escape(name)} => (\S+)", needed)
            owner = subprocess.run(["dpkg", "-S", pathlib.Path(path[1]).resolve()], capture_output=True, text=True).stdout if path else ""
            if owner:
                wanted.add(owner.partition(":")[0])
        wanted -= {"libc6", "libstdc++6", "libgcc-s1"}
        self.assertGreater(len(wanted), 5)
        final = APPTAINER.read_text(encoding="utf-8").partition("Stage: final")[2]
        self.assertLessEqual(wanted, set(final.replace("\\\n", " ").split()))

    def test_the_container_gets_each_file_that_a_build_and_an_installation_read(self):
        copied = set(re.findall(r"(?m)^    (\S+) /source/\1$", APPTAINER.read_text(encoding="utf-8")))
        for word in copied:
            self.assertTrue((SOURCE / word).exists(), word)
        install = set(re.findall(r"\$\{PROJECT_SOURCE_DIR\}/([\w.-]+)", text("cmake/Install.cmake") + text("src/CMakeLists.txt")))
        self.assertLessEqual(install | {"CMakeLists.txt", "CMakePresets.json", "cmake", "scripts", "src"}, copied)


if __name__ == "__main__":
    unittest.main(verbosity=2)
