"""Everything that changes a job's rows, one transaction each.

submission.py   what people ask for: submit, cancel
progress.py     what admission decided and reconcile derived
observation.py  pods and nodes as the watches report them
timeline.py     the job's timeline and the news to open pages
"""

from jobs.actions.observation import observe_jobs, observe_nodes, observe_pods
from jobs.actions.progress import (
    clear_refusal,
    finish,
    record_decisions,
    record_refusal,
    record_status,
    requeue,
)
from jobs.actions.submission import KeyReused, Submission, cancel_job, submit_job

__all__ = [
    "KeyReused",
    "Submission",
    "cancel_job",
    "clear_refusal",
    "finish",
    "observe_jobs",
    "observe_nodes",
    "observe_pods",
    "record_decisions",
    "record_refusal",
    "record_status",
    "requeue",
    "submit_job",
]
