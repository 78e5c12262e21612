"""Pages about jobs and GPUs. Views parse, call one thing, answer; all rows come from queries, scoped to the viewer."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from jobs.actions import KeyReused, cancel_job, submit_job
from jobs.argv import join_command
from jobs.filters import JobFilter
from jobs.forms import FORM_FIELD, JobForm, initial_from
from jobs.logs.tails import log_tails
from jobs.models import Job
from jobs.queries import cluster_view, get_job, home_view, jobs_for, quota_lines, waiting_cause
from jobs.state import TERMINAL, JobState
from tenants.access import Verb, can
from tenants.actions import Denied
from tenants.forms import errors_shown
from tenants.login import ViewerRequest
from tenants.queries import NotVisible, pools_for, teams_for

PAGE_SIZE = 50


@require_GET
def home(request: ViewerRequest) -> HttpResponse:
    """What runs, what waits and why, quota left, free GPUs by model."""
    return render(request, "jobs/home.html", {"home": home_view(request.viewer)})


@require_GET
def job_list(request: ViewerRequest) -> HttpResponse:
    """Jobs with filters and paging; newest first."""
    narrowed = JobFilter(request.GET, queryset=jobs_for(request.viewer))
    jobs = narrowed.qs if narrowed.is_valid() else jobs_for(request.viewer).none()
    if request.GET.getlist("state") == [JobState.QUEUED]:
        jobs = jobs.order_by(F("queue_position").asc(nulls_last=True), "id")
    page = Paginator(jobs, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "filter": narrowed,
        "rows": [(job, waiting_cause(job)) for job in page.object_list],
        "is_filtered": any(request.GET.get(name) for name in JobFilter.base_filters),
        "states": [*JobState],
        "teams": teams_for(request.viewer),
        "pools": pools_for(request.viewer),
    }
    return render(request, "jobs/job_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def job_new(request: ViewerRequest) -> HttpResponse:
    """The form, and its submission. After a submission the browser is sent on, so that a reload repeats nothing."""
    if not _may_submit(request):
        context = {
            "title": "You may not submit jobs",
            "text": "No group of yours makes you a developer or lead of a team.",
        }
        return render(request, "403.html", context, status=403)
    if request.method != "POST":
        return render(request, "jobs/job_form.html", _form_context(request, _fresh_form(request)))
    form = JobForm(request.POST, viewer=request.viewer)
    if form.is_valid() and (job := _submit(request, form)):
        messages.success(request, f"Job #{job.pk} “{job.name}” was submitted.")
        return redirect("job-detail", job.pk)
    return render(request, "jobs/job_form.html", _form_context(request, form), status=422)


def _form_context(request: ViewerRequest, form: JobForm) -> dict[str, Any]:
    return {"form": form, "gpumap": cluster_view(request.viewer), "quotas": quota_lines(request.viewer)}


def _submit(request: ViewerRequest, form: JobForm) -> Job | None:
    try:
        with errors_shown(form, **FORM_FIELD):
            job, _is_new = submit_job(actor=request.viewer, submission=form.submission())
            return job
    except Denied as error:
        form.add_error("team", str(error))
    except KeyReused:
        form.add_error(
            None, "This form was already submitted with other content. Open a new form for another job."
        )
    return None


def _fresh_form(request: ViewerRequest) -> JobForm:
    """An empty form, or one filled from an earlier job (`?from=`) of a team the viewer may read."""
    source = request.GET.get("from", "")
    if source.isascii() and source.isdecimal() and len(source) < 18:
        try:
            job = get_job(request.viewer, int(source))
        except NotVisible:
            job = None
        if job is not None and can(request.viewer, Verb.READ_TENANT_DATA, job.team_id):
            return JobForm(viewer=request.viewer, initial=initial_from(job))
    known = {name: request.GET[name] for name in ("team", "pool", "tier") if name in request.GET}
    return JobForm(viewer=request.viewer, initial=known)


@require_GET
def job_detail(request: ViewerRequest, pk: int) -> HttpResponse:
    """One job: where it stands, why it waits, timeline, pods, logs."""
    job = get_job(request.viewer, pk)
    may_read = can(request.viewer, Verb.READ_TENANT_DATA, job.team_id)
    clone_url = f"{reverse('job-new')}?{urlencode({'from': job.pk})}"
    may_clone = may_read and can(request.viewer, Verb.SUBMIT_JOB, job.team_id)
    context: dict[str, Any] = {
        "job": job,
        "cause": waiting_cause(job),
        "actions": [{"url": clone_url, "label": "Submit a changed copy"}] if may_clone else [],
        "events": list(job.events.all()),
        "pods": list(job.pods.order_by("attempt", "rank", "created_at", "id")),
        "planned_nodes": sorted(set(job.planned_nodes)),
        "is_over": job.state in TERMINAL,
        "queue_end": job.admitted_at or job.finished_at,
        "start_end": job.started_at or job.finished_at,
        "may_read": may_read,
        "may_cancel": can(request.viewer, Verb.CANCEL_JOB, job.team_id) and job.state not in TERMINAL,
        "clone_url": clone_url if may_clone else "",
        "command_line": join_command(job.argv) if may_read else "",
        "logs_base": reverse("log-streams", args=[job.pk]).removesuffix("streams"),
        # For browsers without JavaScript; a live update of the page leaves the log alone.
        "log_tails": log_tails(job) if may_read and not request.headers.get("HX-Request") else [],
    }
    return render(request, "jobs/job_detail.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def job_cancel(request: ViewerRequest, pk: int) -> HttpResponse:
    """Ask first (also without JavaScript), then stop the job."""
    job = get_job(request.viewer, pk)
    if request.method != "POST" and not can(request.viewer, Verb.CANCEL_JOB, job.team_id):
        return render(request, "403.html", {"text": "You may not cancel this job."}, status=403)
    if request.method != "POST":
        context = {
            "title": f"Cancel job #{job.pk} “{job.name}”?",
            "detail": "A waiting job leaves the queue. A running one is told to stop and killed after its grace of "
            f"{job.grace_seconds} seconds; its log stays.",
            "verb": "Cancel the job",
            "back": reverse("job-detail", args=[job.pk]),
            "tone": "danger",
        }
        return render(request, "confirm.html", context)
    job = cancel_job(actor=request.viewer, job=job)
    messages.info(request, f"You cancelled job #{job.pk}.")
    return redirect("job-detail", job.pk)


@require_GET
def cluster(request: ViewerRequest) -> HttpResponse:
    """The GPU map: pools, nodes, who holds what."""
    if not can(request.viewer, Verb.SEE_CLUSTER):
        return render(request, "403.html", status=403)
    return render(request, "jobs/cluster.html", {"gpumap": cluster_view(request.viewer)})


def _may_submit(request: ViewerRequest) -> bool:
    return any(can(request.viewer, Verb.SUBMIT_JOB, team_id) for team_id in request.viewer.team_ids)
