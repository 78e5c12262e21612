"""REST for jobs. Views parse, call one thing, answer; errors are problem+json (`portal/rest.py`)."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.actions import KeyReused, cancel_job, submit_job
from jobs.filters import JobFilter
from jobs.models import Job
from jobs.queries import get_job, jobs_for
from jobs.serializers import (
    EventSerializer,
    JobDetail,
    JobRequest,
    JobSerializer,
    PodSerializer,
    WaitingSerializer,
    waiting_json,
)
from portal.rest import Conflict
from tenants.access import Verb, Viewer, can
from tenants.actions import Denied, Rejected

# A Submission's field names where the API calls them otherwise.
API_FIELD = {"argv": "command", "wall_seconds": "wall_time"}
MAX_KEY_LENGTH = 100


class JobViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[Job]):
    """Jobs of the teams the caller belongs to (of all teams, without tenant data, for platform roles)."""

    queryset = Job.objects.none()
    serializer_class = JobSerializer
    filterset_class = JobFilter
    lookup_value_regex = r"\d{1,18}"

    def get_queryset(self) -> QuerySet[Job]:
        return jobs_for(self._viewer)

    @property
    def _viewer(self) -> Viewer:
        viewer = self.request.viewer  # type: ignore[attr-defined]
        assert isinstance(viewer, Viewer)
        return viewer

    def _job(self, pk: str) -> Job:
        return get_job(self._viewer, int(pk))

    def _rights(self, job: Job) -> dict[str, bool]:
        return {"may_read": can(self._viewer, Verb.READ_TENANT_DATA, job.team_id)}

    def _detail(self, job: Job) -> dict[str, Any]:
        return (JobDetail if self._rights(job)["may_read"] else JobSerializer)(job).data

    @extend_schema(
        request=JobRequest,
        responses={201: JobDetail, 200: JobDetail},
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                OpenApiTypes.STR,
                OpenApiParameter.HEADER,
                description="Sending the same request again with the same key gives the job it made the first "
                "time. A key lives as long as its job's record.",
            )
        ],
    )
    def create(self, request: Request) -> Response:
        """Submit a job."""
        form = JobRequest(data=request.data, context={"viewer": self._viewer})
        form.is_valid(raise_exception=True)
        key = request.headers.get("Idempotency-Key")
        if key is not None and not 1 <= len(key) <= MAX_KEY_LENGTH:
            raise ValidationError({"Idempotency-Key": [f"Give 1 to {MAX_KEY_LENGTH} characters."]})
        try:
            job, is_new = submit_job(actor=self._viewer, submission=form.submission(key))
        except Denied as error:
            raise PermissionDenied(str(error)) from error
        except Rejected as error:
            raise ValidationError({API_FIELD.get(k, k): v for k, v in error.errors.items()}) from error
        except KeyReused as error:
            raise Conflict(str(error)) from error
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(self._detail(job), status=code, headers={"Location": f"/api/v1/jobs/{job.pk}"})

    @extend_schema(responses=JobDetail)
    def retrieve(self, request: Request, pk: str) -> Response:
        """One job; command and environment only for members of its team."""
        return Response(self._detail(self._job(pk)))

    @extend_schema(request=None, responses=JobDetail)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """Stop a job. Cancelling a finished job changes nothing."""
        try:
            job = cancel_job(actor=self._viewer, job=self._job(pk))
        except Denied as error:
            raise PermissionDenied(str(error)) from error
        return Response(self._detail(job))

    @extend_schema(responses=EventSerializer(many=True))
    @action(detail=True, pagination_class=None, filterset_class=None)
    def events(self, request: Request, pk: str) -> Response:
        """The job's timeline, oldest first."""
        return Response(EventSerializer(self._job(pk).events.all(), many=True).data)

    @extend_schema(responses=PodSerializer(many=True))
    @action(detail=True, pagination_class=None, filterset_class=None)
    def pods(self, request: Request, pk: str) -> Response:
        """The job's pods as last observed, of every attempt."""
        job = self._job(pk)
        return Response(PodSerializer(job.pods.all(), many=True, context=self._rights(job)).data)

    @extend_schema(responses=WaitingSerializer)
    @action(detail=True, pagination_class=None, filterset_class=None)
    def waiting(self, request: Request, pk: str) -> Response:
        """Why the job waits; 204 when it does not."""
        cause = waiting_json(self._job(pk))
        if cause is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        return Response(cause)
