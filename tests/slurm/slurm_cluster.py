# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A real Slurm of one node on this machine, for the length of a test: munged, slurmctld and slurmd with their own keys, ports
and folder, next to whatever runs here already. Root only: slurmd starts jobs as their users, and munged runs as munge.

Whatever happens to the test, nothing stays: the daemons die with it (prctl), and a watcher ends the jobs, which belong to
nobody then, and removes the folder. It knows them by the path of slurm.conf in their environment.
"""
import ctypes
import os
import pathlib
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol", "scancel", "sinfo"]
SYSTEM_FOLDERS = "/usr/sbin:/sbin"  # where Debian keeps daemons, and PATH may not look
START_SECONDS = 30
PR_SET_PDEATHSIG = 1


def why_not():
    """Why there can be no Slurm here; None if there can."""
    if os.geteuid() != 0:
        return "a Slurm of our own needs root"
    missing = [name for name in PROGRAMS if program(name) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian's slurmctld, slurmd, slurm-client, munge)"
    try:
        pwd.getpwnam("munge")
    except KeyError:
        return "there is no user munge"
    return None


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":" + SYSTEM_FOLDERS)


def free_ports(count):
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def die_with_parent():
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_all_of(folder):
    """SIGKILL to every process whose environment names the folder, but for this one."""
    mark = f"SLURM_CONF={folder}/".encode()
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if any(variable.startswith(mark) for variable in (entry / "environ").read_bytes().split(b"\0")):
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            pass


def watch(parent, folder):
    """The watcher: when the test has gone, so does all that it started."""
    os.setsid()
    while os.getppid() == parent:
        time.sleep(0.5)
    for _ in range(3):
        kill_all_of(folder)
        time.sleep(0.2)
    shutil.rmtree(folder, ignore_errors=True)


class SlurmCluster:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-slurm-"))
        self.folder.chmod(0o755)
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"),
                                PATH=os.environ.get("PATH", "") + ":" + SYSTEM_FOLDERS)
        self.daemons = []
        self.watcher = os.fork()
        if self.watcher == 0:
            try:
                watch(os.getppid(), self.folder)
            finally:
                os._exit(0)
        try:
            self._start()
        except BaseException:
            print(self.logs(), file=sys.stderr)
            self.stop()
            raise

    def _write_configuration(self):
        host = socket.gethostname().split(".")[0]
        controller, node = free_ports(2)
        for name in ("state", "spool", "log"):
            (self.folder / name).mkdir()
        for number in range(2):  # what Slurm hands out is a number; nobody opens the file
            (self.folder / f"gpu{number}").touch()
        (self.folder / "gres.conf").write_text(f"AutoDetect=off\nName=gpu File={self.folder}/gpu[0-1]\n", encoding="utf-8")
        # Named, because slurmd ends without a cgroup file system if it is to find out; it uses none here.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")
        self.cpus = os.cpu_count()
        (self.folder / "slurm.conf").write_text(f"""
ClusterName=lockstep
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A requeued job begins when its old credential has ended.
AuthInfo=socket={self.folder}/munge/socket,cred_expire=5
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
SlurmctldLogFile={self.folder}/log/slurmctld
SlurmdLogFile={self.folder}/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
JobRequeue=1
KillWait=5
MpiDefault=none
ReturnToService=2
MailProg=/bin/true
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName={host} NodeAddr=127.0.0.1 CPUs={self.cpus} RealMemory=1000 Gres=gpu:2
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=20 OverSubscribe=FORCE:4
PartitionName=high Nodes=ALL PriorityTier=2 PreemptMode=OFF OverSubscribe=EXCLUSIVE
""", encoding="utf-8")

    def _daemon(self, name, *arguments, user=None):
        log = open(self.folder / f"{name}.out", "wb")  # pylint: disable=consider-using-with
        self.daemons.append((name, subprocess.Popen([program(name), *arguments], stdin=subprocess.DEVNULL, stdout=log,
                                                    stderr=log, env=self.environment, user=user, group=user,
                                                    extra_groups=[] if user else None, preexec_fn=die_with_parent)))
        log.close()

    def _start(self):
        self._write_configuration()
        munge = self.folder / "munge"
        munge.mkdir(mode=0o755)
        key = munge / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        for path in (munge, key):
            shutil.chown(path, "munge", "munge")
        self._daemon("munged", "--foreground", f"--socket={munge}/socket", f"--key-file={key}", f"--log-file={munge}/log",
                     f"--pid-file={munge}/pid", f"--seed-file={munge}/seed", user="munge")
        self.wait(lambda: (munge / "socket").exists(), START_SECONDS, "munged")
        self._daemon("slurmctld", "-D")
        self._daemon("slurmd", "-D")
        self.wait(lambda: "idle" in self.command("sinfo", "-h", "-o", "%T", check=False), START_SECONDS, "an idle node")

    def wait(self, condition, limit, what):
        end = time.monotonic() + limit
        while True:
            value = condition()
            if value:
                return value
            gone = [name for name, process in self.daemons if process.poll() is not None]
            if gone or time.monotonic() > end:
                raise AssertionError(f"{f'{gone} ended' if gone else f'after {limit} s'} while waiting for {what}\n{self.logs()}")
            time.sleep(0.1)

    def logs(self):
        parts = []
        for path in [*self.folder.glob("*.out"), *self.folder.glob("log/*"), *self.folder.glob("munge/log")]:
            parts.append(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-30:]))
        return "\n".join(parts)

    def command(self, *words, check=True, **options):
        done = subprocess.run([str(word) for word in words], env=self.environment, capture_output=True, text=True, timeout=60,
                              check=False, **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, *words, variables=None, cwd=None):
        """sbatch; the job's number."""
        environment = dict(self.environment, **(variables or {}))
        done = subprocess.run(["sbatch", "--parsable", *map(str, words)], env=environment, capture_output=True, text=True,
                              timeout=60, check=False, cwd=cwd)
        if done.returncode != 0:
            raise AssertionError(f"sbatch {words}\n{done.stderr}")
        return done.stdout.strip()

    def job(self, number):
        """What the controller knows of a job: {name: value}; {} if it has forgotten it."""
        text = self.command("scontrol", "--oneliner", "show", "job", number, check=False)
        return dict(re.findall(r"(\w+)=(\S*)", text.splitlines()[0])) if text else {}

    def wait_for_state(self, number, *states, limit=90):
        return self.wait(lambda: (job := self.job(number)).get("JobState") in states and job, limit, f"job {number} in {states}")

    def stop(self):
        self.command("scancel", "--quiet", "--full", "--signal=KILL", "--user=root", check=False)
        for _, process in reversed(self.daemons):
            process.kill()
            process.wait()
        kill_all_of(self.folder)
        os.kill(self.watcher, signal.SIGKILL)
        os.waitpid(self.watcher, 0)
        shutil.rmtree(self.folder, ignore_errors=True)
