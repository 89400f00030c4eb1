# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034  # the scripts that source this file use launcher, data_options and code
#
# What the batch scripts in this folder share. They source it: . "$LOCKSTEP_SLURM/job.sh"
#
#   LAUNCHER=srun|mpirun     what starts the ranks (default: srun)
#   LOCKSTEP=FILE            the program (default: lockstep in PATH, or build/release/bin/lockstep)
#   STAGE=FILE               copy this data file to each node's own disk, and read it there (stage_data)

LOCKSTEP="${LOCKSTEP:-$(command -v lockstep || echo "$PWD/build/release/bin/lockstep")}"
[ -x "$LOCKSTEP" ] || { echo "error: there is no program $LOCKSTEP; set LOCKSTEP" >&2; exit 2; }

# Libraries start no threads of their own.
export OMP_NUM_THREADS=1
# mpirun's daemons notice a lost host within 20 s instead of minutes (docs/hosts.md).
export OMPI_MCA_oob_tcp_keepalive_time=10 OMPI_MCA_oob_tcp_keepalive_intvl=3 OMPI_MCA_oob_tcp_keepalive_probes=3

# Sets `launcher`: one rank per task of the job, each bound to its own cores.
choose_launcher() {
  local cpus="${SLURM_CPUS_PER_TASK:-1}"
  case "${LAUNCHER:-srun}" in
    # Since Slurm 22.05 srun does not inherit --cpus-per-task from sbatch.
    srun) launcher=(srun --mpi=pmix --cpus-per-task="$cpus" --cpu-bind=cores --kill-on-bad-exit=0) ;;
    mpirun) launcher=(mpirun --map-by "slot:PE=$cpus" --bind-to core) ;;
    *) echo "error: LAUNCHER is '$LAUNCHER', not srun or mpirun" >&2; exit 2 ;;
  esac
}

# Sets SLURM_JOB_END_TIME, from which Lockstep knows when this job ends. Newer versions of Slurm set it themselves.
tell_job_end() {
  local end
  [ -n "${SLURM_JOB_END_TIME:-}" ] && return
  end="$(squeue --noheader --job "$SLURM_JOB_ID" --format %e 2>/dev/null)" || return 0
  end="$(date --date="$end" +%s 2>/dev/null)" || return 0  # a job without a limit
  export SLURM_JOB_END_TIME="$end"
}

# With STAGE: copies that file to each node and sets `data_options` so that Lockstep reads the copy.
stage_data() {
  data_options=()
  [ -n "${STAGE:-}" ] || return 0
  staged="${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/lockstep-$SLURM_JOB_ID"
  # shellcheck disable=SC2016  # the inner bash expands $1 and $2
  on_each_node bash -c 'mkdir -p -- "$2" && cp -- "$1" "$2/"' stage "$STAGE" "$staged"
  trap remove_staged EXIT
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
  "$@" &
  local launched=$!
  trap 'kill -USR1 "$launched" 2>/dev/null' USR1 TERM
  # A signal interrupts `wait`: repeat it until the launcher has exited.
  while kill -0 "$launched" 2>/dev/null; do wait "$launched"; done
  wait "$launched"
  code=$?
  trap - USR1 TERM
}

# True if the run ended with 75 and another job is to continue it. False if the job is being ended from outside, by scancel or
# at its time limit: its state is then no longer RUNNING. (Slurm itself queues a preempted job again.)
wants_another_job() {
  [ "$code" -eq 75 ] || return 1
  case "$(squeue --noheader --job "$SLURM_JOB_ID" --states all --format %T)" in
    RUNNING) return 0 ;;
    *) echo "saved; but the job is being ended from outside, so nothing follows it. Submit it again to go on."; return 1 ;;
  esac
}
