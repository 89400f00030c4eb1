# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A real terminal for the end-to-end tests: a command in a tmux of its own, what its screen shows, keys for it."""
import os
import shutil
import tempfile
import subprocess

from lockstep_run import children, wait_until

LIMIT = 60


def has_tmux():
    return shutil.which("tmux") is not None


class Terminal:
    """Runs `command` (a line for sh) in a terminal of the given size; it stays open after the command."""

    def __init__(self, folder, command, columns=80, lines=24, variables=None):
        self.socket = tempfile.mktemp(prefix="tmux-", dir=folder)
        environment = {"LC_ALL": "C.UTF-8", **(variables or {})}
        words = " ".join(f"{name}='{value}'" for name, value in environment.items())
        # The screen of the program ends with it; what it leaves is shown below, with the state of the terminal.
        line = f"unset NO_COLOR LANG LC_CTYPE; export {words}; {command}; echo code=$?; stty -a | tr ';' '\\n' | grep -o -- '-*icanon'; cat"
        clean = {name: value for name, value in os.environ.items() if name not in ("TMUX", "COLUMNS", "LINES")}
        self._tmux("-u", "-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", lines, line, environment=clean)

    def _tmux(self, *words, environment=None):
        done = subprocess.run(["tmux", "-S", self.socket, *map(str, words)], capture_output=True, text=True, check=False,
                              timeout=LIMIT, env=environment, encoding="utf-8")
        assert done.returncode == 0, f"tmux {words}: {done.stderr}"
        return done.stdout

    def screen(self, colours=False):
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def wait_for(self, text):
        """The screen, once it shows `text`."""
        def shown():
            screen = self.screen()
            return screen if text in screen else None
        try:
            return wait_until(shown, LIMIT, repr(text))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.screen()}") from None

    def keys(self, *keys):
        self._tmux("send-keys", *keys)

    def child(self):
        """The process of the command."""
        shell = int(self._tmux("display-message", "-p", "#{pane_pid}"))
        return wait_until(lambda: children(shell), LIMIT, "the command")[0]

    def resize(self, columns, lines):
        self._tmux("resize-window", "-x", columns, "-y", lines)

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False, timeout=LIMIT)
