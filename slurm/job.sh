# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034  # the scripts that source this file use launcher, data_options and code
#
# What the batch scripts in this folder share, and what a script of your own may source. It uses the traps of USR1, TERM and
# EXIT, and works with `set -euo pipefail` too. Variables:
#
#   LOCKSTEP=FILE            the program (default: lockstep in PATH, or the one that this folder was built or installed with)
#   LOCKSTEP_SITE=FILE       shell commands that each job runs first: module loads, variables (default: site.sh in this folder)
#   LAUNCHER=srun|mpirun     what starts the ranks (default: srun)
#   SLURM_MPI_TYPE=TYPE      srun's --mpi (default: pmix, which Open MPI needs; MPICH: pmi2)
#   STAGE=FILE               copy this data file to each node's own disk, and read it there (stage_data)

job_folder="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"

# give_up CODE MESSAGE...: ends the job with one line.
give_up() {
  local code_of_error="$1"
  shift
  printf 'error: %s\n' "$*" >&2
  exit "$code_of_error"
}

# persist SECONDS COMMAND...: repeats a command of the queue that fails, or does not answer within that time: its controller may be busy.
persist() {
  local limit="$1" attempt
  shift
  for attempt in 1 2 3 4; do
    ! timeout "$limit" "$@" || return 0
    [ "$attempt" -eq 4 ] || sleep 2
  done
  return 1
}

# A signal while nothing runs that could save. The queue's warnings do not kill the script then.
warned=""
trap 'warned=USR1' USR1

site="${LOCKSTEP_SITE:-$job_folder/site.sh}"
if [ -r "$site" ]; then
  # shellcheck disable=SC1090  # of the site
  . "$site"
elif [ -n "${LOCKSTEP_SITE:-}" ]; then
  give_up 2 "LOCKSTEP_SITE: there is no file $site"
fi

# Libraries start no threads of their own.
export OMP_NUM_THREADS=1
# mpirun's daemons notice a lost host within 20 s instead of minutes (docs/hosts.md).
export OMPI_MCA_oob_tcp_keepalive_time=10 OMPI_MCA_oob_tcp_keepalive_intvl=3 OMPI_MCA_oob_tcp_keepalive_probes=3

# Sets LOCKSTEP if it is not set. A script that starts a program of its own does not need it.
choose_program() {
  local place
  if [ -z "${LOCKSTEP:-}" ]; then
    LOCKSTEP="$(command -v lockstep || true)"
    for place in "$job_folder/../build/release/bin" "$job_folder/../../../bin" "$PWD/build/release/bin"; do
      [ -n "$LOCKSTEP" ] || [ ! -x "$place/lockstep" ] || LOCKSTEP="$place/lockstep"
    done
    [ -n "$LOCKSTEP" ] || give_up 2 "there is no program lockstep in PATH, next to $job_folder, or in $PWD/build/release/bin;" \
      "load its module, or set LOCKSTEP"
  fi
  if [ ! -f "$LOCKSTEP" ] || [ ! -x "$LOCKSTEP" ]; then give_up 2 "there is no program $LOCKSTEP; set LOCKSTEP"; fi
}

# True if the mpirun in PATH is Open MPI's, which has other options than MPICH's and Intel MPI's.
has_open_mpi() {
  local version
  version="$(mpirun --version 2>/dev/null || true)"
  [[ "$version" == *"Open MPI"* || "$version" == *OpenRTE* ]]
}

# Sets `launcher`: one rank per task of the job, each bound to its own cores.
choose_launcher() {
  local cpus="${SLURM_CPUS_PER_TASK:-1}" kind="${LAUNCHER:-srun}"
  case "$kind" in
    srun | mpirun) command -v "$kind" >/dev/null || give_up 2 "there is no $kind in PATH; load the module that has it, or choose LAUNCHER" ;;
    *) give_up 2 "LAUNCHER is '$kind', not srun or mpirun" ;;
  esac
  if [ "$kind" = srun ]; then
    # Since Slurm 22.05 srun does not inherit --cpus-per-task from sbatch.
    launcher=(srun --mpi="${SLURM_MPI_TYPE:-pmix}" --cpus-per-task="$cpus" --kill-on-bad-exit=0)
    # A hint of sbatch (--hint=nomultithread) binds by itself; an option of srun's would put it out of force.
    [ -n "${SLURM_HINT:-}" ] || launcher+=(--cpu-bind=cores)
  elif has_open_mpi; then
    launcher=(mpirun --map-by "slot:PE=$cpus" --bind-to core)
  else
    launcher=(mpirun -n "${SLURM_NTASKS:-1}" -bind-to "core:$cpus")
  fi
}

# Sets SLURM_JOB_END_TIME, from which Lockstep knows when this job ends. Newer versions of Slurm set it themselves.
tell_job_end() {
  local end
  [ -z "${SLURM_JOB_END_TIME:-}" ] || return 0
  end="$(persist 15 squeue --noheader --job "$SLURM_JOB_ID" --format %e 2>/dev/null)" || {
    echo "note: squeue does not answer, so only the signal of --signal tells when this job ends" >&2
    return 0
  }
  end="$(date --date="$end" +%s 2>/dev/null)" || return 0  # a job without a limit
  export SLURM_JOB_END_TIME="$end"
}

# With STAGE: copies that file to each node and sets `data_options` so that Lockstep reads the copy.
stage_data() {
  data_options=()
  [ -n "${STAGE:-}" ] || return 0
  if [ ! -f "$STAGE" ] || [ ! -r "$STAGE" ]; then give_up 2 "STAGE: there is no file $STAGE that you may read"; fi
  staged="${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/lockstep-$SLURM_JOB_ID"
  trap remove_staged EXIT
  # shellcheck disable=SC2016  # the inner bash expands $1 and $2
  on_each_node bash -c 'mkdir -p -- "$2" && cp -- "$1" "$2/"' stage "$STAGE" "$staged" ||
    give_up 1 "STAGE: $STAGE was not copied to $staged on each node"
  # As YAML: in single quotes, with those of the name doubled.
  local path="$staged/${STAGE##*/}"
  data_options=(--set "data.path='${path//\'/\'\'}'")
}

on_each_node() {
  srun --ntasks-per-node=1 --ntasks="$SLURM_JOB_NUM_NODES" --mpi=none --overlap "$@"
}

remove_staged() {
  on_each_node rm -rf -- "$staged"
}

# run COMMAND...: runs the command and sets `code`. The command runs in the background because bash handles a signal only
# while it waits. USR1 comes from --signal=B:USR1@120, TERM from a preemption. The launcher passes USR1 to its ranks, which
# save and exit with 75.
run() {
  # Without a program that could save, the next start would get no further: better an end that is seen.
  [ -z "$warned" ] || give_up 1 "the time of the job was nearly over before its program started; give it more (--time)"
  local launched=""
  trap 'warned=USR1; [ -z "$launched" ] || kill -USR1 "$launched" 2>/dev/null || true' USR1
  trap 'warned=TERM; [ -z "$launched" ] || kill -USR1 "$launched" 2>/dev/null || true' TERM
  "$@" &
  launched=$!
  # A signal interrupts `wait`: repeat it until the launcher has exited.
  while kill -0 "$launched" 2>/dev/null; do wait "$launched" || true; done
  code=0
  wait "$launched" || code=$?
  trap - USR1 TERM
}

# True if the run ended with 75 and another job is to continue it. False if the job is being ended from outside, by scancel or
# at its time limit: its state is then no longer RUNNING. (Slurm itself queues a preempted job again.)
wants_another_job() {
  local state
  [ "$code" -eq 75 ] || return 1
  state="$(persist 15 squeue --noheader --job "$SLURM_JOB_ID" --states all --format %T)" || state=""
  # Slurm does not answer. A job that is ended from outside gets TERM first.
  if [ -z "$state" ] && [ "$warned" != TERM ]; then
    echo "note: squeue does not answer; nothing has ended this job from outside, so the run goes on" >&2
    state=RUNNING
  fi
  [ "$state" != RUNNING ] || return 0
  echo "saved; but the job is being ended from outside, so nothing follows it. Submit it again to go on."
  return 1
}

# Returns the job to the queue, and ends the script.
requeue() {
  echo "saved; back into the queue"
  persist 60 scontrol requeue "$SLURM_JOB_ID" || give_up 1 "Slurm did not take the job back; the run is saved: submit it again to go on"
  exit "$code"
}
