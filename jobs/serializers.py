"""Jobs as JSON, in and out. Used by `jobs/api.py` only; parsing is shared with the form through `jobs/fields.py`."""

from collections.abc import Callable
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from jobs import fields
from jobs.actions import Submission
from jobs.models import Job, JobEvent, Pod
from jobs.queries import waiting_cause
from jobs.state import CommandMode
from portal.kube.quantity import format_cpu, format_memory
from tenants.access import Verb, Viewer, can
from tenants.models import Pool, PriorityTier, Team
from tenants.queries import pools_for, teams_for, tiers_for

Related = serializers.SlugRelatedField[Any]


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "number"}]})
class ParsedField(serializers.Field[Any, Any, Any, Any]):
    """A field read by one of the parsers of `jobs.fields`; its ValueError becomes the field's error."""

    def __init__(self, parse: Callable[[Any], Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._parse = parse

    def to_internal_value(self, data: Any) -> Any:
        try:
            return self._parse(data)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from error

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class MappingField(ParsedField):
    """An object of names and scalar values."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(fields.scalar_mapping, **kwargs)


class NamedField(serializers.SlugRelatedField[Any]):
    """A row by its slug. Text that a database refuses is no name."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or not fields.is_storable(data):
            self.fail("invalid")
        return super().to_internal_value(data)


class JobRequest(serializers.Serializer[Any]):
    """What `POST /jobs` takes."""

    team = NamedField(slug_field="slug", queryset=Team.objects.none())
    name = serializers.CharField(max_length=120)
    pool = NamedField(slug_field="slug", queryset=Pool.objects.none())
    tier = NamedField(slug_field="slug", queryset=PriorityTier.objects.none(), required=False)
    image = serializers.CharField(max_length=500)
    command = serializers.ListField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False), required=False, default=list
    )
    args = serializers.ListField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False), required=False, default=list
    )
    script = serializers.CharField(required=False, default="", trim_whitespace=False, allow_blank=True)
    env = MappingField(required=False, default=dict)
    labels = MappingField(required=False, default=dict)
    annotations = MappingField(required=False, default=dict)
    workers = serializers.IntegerField(min_value=1, default=1)
    gpus = ParsedField(fields.gpus, required=False, allow_null=True, default=0)
    cpu = ParsedField(fields.cpu_milli, required=False, default=1000)
    memory = ParsedField(fields.memory_bytes, required=False, default=1024**3)
    wall_time = ParsedField(fields.duration_seconds, required=False, allow_null=True, default=None)
    retries = serializers.IntegerField(min_value=0, max_value=20, default=0)
    grace_seconds = serializers.IntegerField(min_value=0, max_value=3600, default=30)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The declared fields, their choices narrowed to what the viewer may use."""
        found = super().get_fields()
        viewer: Viewer | None = self.context.get("viewer")
        if viewer is not None:
            teams = teams_for(viewer)
            mine = [team.pk for team in teams if can(viewer, Verb.SUBMIT_JOB, team.pk)]
            choices = {
                "team": teams.filter(pk__in=mine),
                "pool": pools_for(viewer),
                "tier": tiers_for(viewer),
            }
            for name, queryset in choices.items():
                found[name].queryset = queryset  # type: ignore[attr-defined]
        return found

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["script"] and (attrs["command"] or attrs["args"]):
            raise serializers.ValidationError(
                {"script": "Give either a script or command and args, not both."}
            )
        if "tier" not in attrs:
            tier = tiers_for(self.context["viewer"]).filter(is_default=True).first()
            if tier is None:
                raise serializers.ValidationError({"tier": "There is no default tier; name one."})
            attrs["tier"] = tier
        return attrs

    def submission(self, key: str | None) -> Submission:
        """The checked values as an action takes them."""
        data = self.validated_data
        is_script = bool(data["script"])
        return Submission(
            team=data["team"],
            pool=data["pool"],
            tier=data["tier"],
            name=data["name"],
            image=data["image"],
            command_mode=CommandMode.SCRIPT if is_script else CommandMode.ARGV,
            argv=() if is_script else (*data["command"], *data["args"]),
            script=data["script"],
            env=data["env"],
            labels=data["labels"],
            annotations=data["annotations"],
            workers=data["workers"],
            gpus=data["gpus"] or 0,
            cpu_milli=data["cpu"],
            memory_bytes=data["memory"],
            wall_seconds=data["wall_time"],
            retries=data["retries"],
            grace_seconds=data["grace_seconds"],
            key=f"api:{key}" if key else None,
        )


class WaitingSerializer(serializers.Serializer[Any]):
    """Why a job waits."""

    code = serializers.CharField()
    title = serializers.CharField()
    sentence = serializers.CharField()
    detail = serializers.DictField()
    remedies = serializers.ListField(child=serializers.CharField())
    is_final = serializers.BooleanField()


def waiting_json(job: Job) -> dict[str, Any] | None:
    """The job's waiting cause as `WaitingSerializer` describes it."""
    cause = waiting_cause(job)
    if cause is None:
        return None
    return {
        "code": cause.code,
        "title": cause.title,
        "sentence": cause.sentence(),
        "detail": cause.detail,
        "remedies": cause.remedies,
        "is_final": cause.is_final,
    }


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job as every viewer of its team's list may see it; command and environment are in `JobDetail`."""

    team: Related = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    pool: Related = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    tier: Related = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    owner = serializers.CharField(source="owner.username", read_only=True)
    cpu = serializers.SerializerMethodField()
    memory = serializers.SerializerMethodField()
    waiting = serializers.SerializerMethodField()

    class Meta:
        model = Job
        fields: ClassVar[tuple[str, ...]] = (
            "id",
            "name",
            "team",
            "owner",
            "pool",
            "tier",
            "state",
            "reason",
            "message",
            "workers",
            "gpus",
            "cpu",
            "memory",
            "wall_seconds",
            "retries",
            "attempt",
            "queue_position",
            "waiting",
            "created_at",
            "admitted_at",
            "started_at",
            "finished_at",
        )
        read_only_fields = fields

    def get_cpu(self, job: Job) -> str:
        return format_cpu(job.cpu_milli)

    def get_memory(self, job: Job) -> str:
        return format_memory(job.memory_bytes)

    @extend_schema_field(WaitingSerializer(allow_null=True))
    def get_waiting(self, job: Job) -> dict[str, Any] | None:
        return waiting_json(job)


class JobDetail(JobSerializer):
    """A job with what only its own team may read; its `command` is command and args of the request in one."""

    command = serializers.ListField(source="argv", child=serializers.CharField(), read_only=True)

    class Meta(JobSerializer.Meta):
        fields = (
            *JobSerializer.Meta.fields,
            "image",
            "command_mode",
            "command",
            "script",
            "env",
            "labels",
            "annotations",
        )
        read_only_fields = fields


class EventSerializer(serializers.ModelSerializer[JobEvent]):
    """One step of a job's timeline."""

    class Meta:
        model = JobEvent
        fields = ("at", "state", "reason", "message", "actor")
        read_only_fields = fields


class PodSerializer(serializers.ModelSerializer[Pod]):
    """One pod of a job as last observed; what its programs say of their end only with `may_read` in the context."""

    containers = serializers.SerializerMethodField()

    class Meta:
        model = Pod
        fields = (
            "name",
            "node_name",
            "phase",
            "reason",
            "message",
            "rank",
            "attempt",
            "gpus",
            "containers",
            "created_at",
            "started_at",
            "finished_at",
            "gone_at",
        )
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.DictField()))
    def get_containers(self, pod: Pod) -> list[dict[str, object]]:
        """Kind, state, times and exit code of each container. A termination message is tenants' data, as a log is."""
        if self.context.get("may_read"):
            return pod.containers
        return [{key: value for key, value in each.items() if key != "message"} for each in pod.containers]
