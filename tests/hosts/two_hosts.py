# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Two hosts on one machine, for hosts_test.py: network namespaces 1 and 2 with the addresses 10.77.0.1 and 10.77.0.2,
joined by a bridge in a third namespace, so that nothing is visible outside. All names begin with "lk<process id>", so that
several tests can run at the same time, and the remains of killed tests are found and removed.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess

from lockstep_run import alive, rank_of, wait_until

PREFIX = f"lk{os.getpid()}"
ENTER = pathlib.Path(__file__).with_name("enter_host.sh")


def command(*words, check=True):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=30, check=False)
    if check and result.returncode != 0:
        raise OSError(f"{' '.join(map(str, words))}: {result.stderr.strip()}")
    return result.stdout


def name(number):
    return f"{PREFIX}-{number}"


def processes(number):
    """The process ids on a host."""
    return [int(pid) for pid in command("ip", "netns", "pids", name(number), check=False).split()]


def ranks(number):
    """{rank: pid} of the ranks on a host."""
    found = {rank_of(pid): pid for pid in processes(number) if is_lockstep(pid)}
    found.pop(None, None)
    return found


def is_lockstep(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "lockstep"
    except OSError:
        return False


def remove(namespace):
    for pid in command("ip", "netns", "pids", namespace, check=False).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
        wait_until(lambda: not alive(int(pid)), 30, f"process {pid} to die")
    command("ip", "netns", "del", namespace, check=False)


def remove_all():
    """Removes the namespaces of this test and of tests that have ended."""
    for line in command("ip", "netns", "list", check=False).splitlines():
        found = re.match(r"(lk(\d+)-\d)\b", line)
        if found and (int(found[2]) == os.getpid() or not alive(int(found[2]))):
            remove(found[1])


def make():
    """Creates the hosts. Raises OSError if namespaces, bridges or host names cannot be created."""
    for number in (0, 1, 2):
        command("ip", "netns", "add", name(number))
    command("ip", "-n", name(0), "link", "add", "bridge", "type", "bridge")
    command("ip", "-n", name(0), "link", "set", "bridge", "up")
    for number in (1, 2):
        command("ip", "-n", name(0), "link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns",
                name(number))
        command("ip", "-n", name(0), "link", "set", f"port{number}", "master", "bridge", "up")
        command("ip", "-n", name(number), "address", "add", f"10.77.0.{number}/24", "dev", "eth0")
        command("ip", "-n", name(number), "link", "set", "lo", "up")
        set_link(number, "up")
    command("env", f"LOCKSTEP_HOSTS={PREFIX}", ENTER, "10.77.0.2", "true")


def set_link(number, state):
    command("ip", "-n", name(number), "link", "set", "eth0", state)


def why_not():
    """The reason why two hosts cannot be created here; None if they can."""
    if os.geteuid() != 0:
        return "not root"
    for program in ("ip", "unshare", "hostname"):
        if shutil.which(program) is None:
            return f"there is no {program} (Debian: iproute2, util-linux, hostname)"
    try:
        make()
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        remove_all()
    return None
