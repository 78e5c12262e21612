"""The last lines of a job's logs as a page shows them without JavaScript (templates/jobs/_logtail.html)."""

from dataclasses import dataclass

from django.urls import reverse

from jobs.logs import archive
from jobs.models import Job, LogStream

STREAMS = 4  # a page, not an archive: all streams are in the viewer and in the downloads
LINES = 200


@dataclass(frozen=True)
class LogTail:
    """The end of one container's output."""

    title: str
    raw_url: str
    note: str
    lines: list[str]


def log_tails(job: Job) -> list[LogTail]:
    """The ends of the newest main containers' output; callers have checked that the viewer may read it."""
    streams = (
        LogStream.objects.filter(pod__job=job, kind="main")
        .select_related("pod")
        .order_by("-pod__attempt", "pod__rank", "-pod__created_at", "container", "-restart")
    )
    return [
        LogTail(
            title=f"{stream.pod.name}, {stream.container}",
            raw_url=reverse("log-raw", args=[job.pk, stream.pk]),
            note=stream.note,
            lines=archive.tail(stream, LINES),
        )
        for stream in streams[:STREAMS]
    ]
