# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The modulefiles that `cmake --install` has written, as Lmod and Environment Modules read them: each path is there, the program runs,
completion works, another version is excluded, and unloading leaves nothing.

  modules_test.py PREFIX
"""
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PREFIX = pathlib.Path(sys.argv.pop(1)).resolve()
FOLDER = PREFIX / "share" / "lockstep" / "modulefiles"
FILES = sorted(path for path in FOLDER.glob("lockstep/*"))
PATHS = ("PATH", "MANPATH", "LD_LIBRARY_PATH", "CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH")


def lmod():
    """The command of Lmod that prints the shell's commands; None without Lmod."""
    found = [os.environ["LMOD_CMD"]] if "LMOD_CMD" in os.environ else glob.glob("/usr/share/lmod/*/libexec/lmod")
    return found[0] if found else None


def modulecmd():
    """The same of Environment Modules."""
    places = ["/usr/lib/modulecmd.tcl", *glob.glob("/usr/lib/*/modulecmd.tcl"), "/usr/share/Modules/libexec/modulecmd.tcl"]
    named = os.environ.get("LOCKSTEP_MODULECMD_TCL")
    return next((place for place in ([named] if named else []) + places if os.path.exists(place)), None)


class Modules:
    """Tests for one of the two programs: `self.command` writes shell code, `self.ending` is that of its files."""
    command, ending = None, ""

    def setUp(self):
        if self.command is None:
            self.skipTest(f"{self.name} is not installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for version in (FILES[0].name.removesuffix(".lua"), "9.9"):  # a second version, of the same file
            (self.folder / "lockstep").mkdir(exist_ok=True)
            source = next(path for path in FILES if path.name.endswith(".lua") == (self.ending == ".lua"))
            shutil.copy(source, self.folder / "lockstep" / f"{version}{self.ending}")
        self.version = FILES[0].name.removesuffix(".lua")

    def shell(self, text, code=0):
        """What a shell with a function `module` prints."""
        head = f'export MODULEPATH="{self.folder}"; unset MANPATH\nmodule() {{ eval "$({self.call} "$@")"; }}\n'
        done = subprocess.run(["bash", "-c", head + text], capture_output=True, text=True, timeout=60, check=False,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LMOD_PAGER": "cat"})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_each_path_is_there(self):
        for name in PATHS:
            first, *rest = self.shell(f'module load lockstep/{self.version}; printf %s "${name}"').split(":")
            self.assertTrue(pathlib.Path(first).is_dir() and pathlib.Path(first).is_relative_to(PREFIX), f"{name}={first}")
            if name == "MANPATH":
                self.assertIn("", rest, "the system's manual pages are lost")
        self.assertIn("lockstep", self.shell(f"module load lockstep/{self.version}; lockstep --version; ls $LOCKSTEP_SLURM/job.sh $LOCKSTEP_ROOT/bin/lockstep"))

    def test_pkg_config_and_manual_pages_find_it(self):
        if shutil.which("pkg-config"):
            self.assertIn("-llockstep", self.shell(f"module load lockstep/{self.version}; pkg-config --libs lockstep"))
        if shutil.which("man"):
            self.assertIn(str(PREFIX), self.shell(f"module load lockstep/{self.version}; man -w lockstep"))

    def test_bash_completes(self):
        self.assertRegex(self.shell(f"module load lockstep/{self.version}; complete -p lockstep"), r"complete .*lockstep")

    def test_help_and_whatis_say_what_it_is(self):
        self.assertIn("LOCKSTEP_SLURM", self.shell(f"module help lockstep/{self.version}"))
        self.assertIn("data-parallel", self.shell(f"module whatis lockstep/{self.version}"))

    def test_another_version_takes_its_place_or_is_refused(self):
        text = f"module load lockstep/{self.version}; module load lockstep/9.9; echo \"loaded: $LOADEDMODULES\""
        loaded, = (line for line in self.shell(text).splitlines() if line.startswith("loaded: "))
        self.assertEqual(loaded.count("lockstep/"), 1, loaded)

    def test_unloading_leaves_nothing(self):
        text = f'module load lockstep/{self.version}; module unload lockstep; env; complete -p lockstep'
        left = self.shell(text, code=1)
        self.assertNotIn(str(PREFIX), left)


class Lmod(Modules, unittest.TestCase):
    name, command, ending = "Lmod", lmod(), ".lua"
    call = f"{command} bash"


class EnvironmentModules(Modules, unittest.TestCase):
    name, command = "Environment Modules", modulecmd()
    call = f"{shutil.which('tclsh') or 'tclsh8.6'} {command} bash"


if __name__ == "__main__":
    unittest.main(verbosity=2)
