"""The New-job form: typed text to a `Submission`, with each error at its field."""

import secrets
from collections.abc import Callable
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from jobs import fields
from jobs.actions import Submission
from jobs.argv import join_command
from jobs.models import Job
from jobs.state import CommandMode
from portal.kube.quantity import format_cpu, format_memory
from tenants.access import Verb, Viewer, can
from tenants.models import Pool, PriorityTier, Team
from tenants.queries import pools_for, teams_for, tiers_for


class ParsedField(forms.CharField):
    """A text field whose value is what `parse` makes of it; its ValueError becomes the field's error."""

    def __init__(self, parse: Callable[[str], Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._parse = parse

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return self._parse(text)
        except ValueError as error:
            raise ValidationError(str(error), code="invalid") from error


class JobForm(forms.Form):
    """What one job runs and needs. Its choices are what `viewer` may use."""

    team = forms.ModelChoiceField(Team.objects.none(), to_field_name="slug", empty_label=None)
    name = forms.CharField(max_length=120, help_text="For people; need not be unique.")
    pool = forms.ModelChoiceField(Pool.objects.none(), to_field_name="slug", empty_label=None)
    tier = forms.ModelChoiceField(PriorityTier.objects.none(), to_field_name="slug", empty_label=None)
    image = forms.CharField(max_length=500, help_text="Container image, e.g. registry.example/train:1.2")
    command_mode = forms.ChoiceField(
        choices=[(CommandMode.ARGV, "Command"), (CommandMode.SCRIPT, "Shell script")],
        widget=forms.RadioSelect,
        label="Start it with",
        initial=CommandMode.ARGV,
    )
    command = ParsedField(
        fields.command_line,
        required=False,
        help_text="Split like a shell splits it, but nothing is expanded. Empty: what the image runs by itself.",
    )
    script = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text="Run by /bin/sh -c, exactly as written.",
    )
    env = ParsedField(
        fields.pairs,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Environment",
        help_text="NAME=value, one a line.",
    )
    workers = forms.IntegerField(initial=1, min_value=1, help_text="All start together or none does.")
    gpus = ParsedField(fields.gpus, required=False, initial="1", label="GPUs per worker")
    cpu = ParsedField(fields.cpu_milli, initial="4", label="CPU per worker", help_text="Cores: 4, or 500m.")
    memory = ParsedField(
        fields.memory_bytes, initial="16Gi", label="Memory per worker", help_text="16Gi, 500M"
    )
    wall_time = ParsedField(
        fields.duration_seconds,
        required=False,
        label="Wall time",
        help_text="2h, 90m; the job is stopped after it. A declared time helps it start earlier.",
    )
    retries = forms.IntegerField(initial=0, min_value=0, max_value=20, required=False)
    grace_seconds = forms.IntegerField(
        initial=30,
        min_value=0,
        max_value=3600,
        required=False,
        label="Grace in seconds",
        help_text="Between the signal to stop (SIGTERM) and the kill.",
    )
    labels = ParsedField(
        fields.pairs,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="key=value, one a line; they are put on the job's pods too.",
    )
    annotations = ParsedField(
        fields.pairs,
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="key=value, one a line, any text.",
    )
    # Made anew with each form page: sending the same page twice submits one job (RW-039).
    submission_key = forms.CharField(max_length=64, widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, viewer: Viewer, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        teams = teams_for(viewer)
        mine = [team.pk for team in teams if can(viewer, Verb.SUBMIT_JOB, team.pk)]
        self._choices("team", teams.filter(pk__in=mine))
        self._choices("pool", pools_for(viewer))
        self._choices("tier", tiers_for(viewer))
        tier = tiers_for(viewer).filter(is_default=True).first()
        if tier is not None:
            self.fields["tier"].initial = tier.slug
        self.fields["submission_key"].initial = secrets.token_urlsafe(16)

    def _choices(self, name: str, queryset: Any) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = queryset

    def submission(self) -> Submission:
        """The checked values as an action takes them."""
        data = self.cleaned_data
        mode = CommandMode(data["command_mode"])
        return Submission(
            team=data["team"],
            pool=data["pool"],
            tier=data["tier"],
            name=data["name"],
            image=data["image"],
            command_mode=mode,
            argv=tuple(data["command"]) if mode is CommandMode.ARGV else (),
            # Browsers send line ends as CRLF; a shell would see the CR as part of the line.
            script=data["script"].replace("\r\n", "\n") if mode is CommandMode.SCRIPT else "",
            env=data["env"],
            labels=data["labels"],
            annotations=data["annotations"],
            workers=data["workers"],
            gpus=data["gpus"],
            cpu_milli=data["cpu"],
            memory_bytes=data["memory"],
            wall_seconds=data["wall_time"],
            retries=data["retries"] or 0,
            grace_seconds=30 if data["grace_seconds"] is None else data["grace_seconds"],
            key=f"form:{data['submission_key']}" if data["submission_key"] else None,
        )


# Names of a Submission's fields where the form calls them otherwise, so that errors land at the right field.
FORM_FIELD = {"argv": "command", "wall_seconds": "wall_time"}


def initial_from(job: Job) -> dict[str, Any]:
    """The form's initial values that submit the same job again."""
    return {
        "team": job.team.slug,
        "name": job.name,
        "pool": job.pool.slug,
        "tier": job.tier.slug,
        "image": job.image,
        "command_mode": job.command_mode,
        "command": join_command(job.argv),
        "script": job.script,
        "env": as_lines(job.env),
        "workers": job.workers,
        "gpus": job.gpus,
        "cpu": format_cpu(job.cpu_milli),
        "memory": format_memory(job.memory_bytes),
        "wall_time": fields.format_duration(job.wall_seconds),
        "retries": job.retries,
        "grace_seconds": job.grace_seconds,
        "labels": as_lines(job.labels),
        "annotations": as_lines(job.annotations),
    }


def as_lines(mapping: dict[str, str]) -> str:
    """A mapping as the NAME=value lines that `fields.pairs` reads."""
    return "\n".join(f"{name}={value}" for name, value in mapping.items())
