"""Ring a doorbell: start a task by name with ids. The only place that knows how tasks are queued.

The bell is a row written in the caller's transaction: it rings exactly when what it is about is committed. It may ring
twice or, after a crash, not at all; tasks repeat harmlessly and the sweep finds what was missed.
"""

from django_q.tasks import async_task


def ring(task: str, *ids: int) -> None:
    """Have `task` ("jobs.tasks.reconcile_job") run soon with these ids."""
    async_task(task, *ids)
