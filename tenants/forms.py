"""Forms of the administration: typed text to rows that an action saves."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from tenants.access import PlatformRole, TeamRole
from tenants.actions import Rejected
from tenants.models import Pool, Quota, Team


def labels_of(text: str) -> dict[str, str]:
    """`key=value` lines to labels. Raises ValidationError naming the line."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            key, separator, value = line.strip().partition("=")
            if not separator or not key:
                raise ValidationError(f"Line {number}: write key=value.")
            found[key] = value
    return found


@contextmanager
def errors_shown(form: forms.BaseForm, **renamed: str) -> Iterator[None]:
    """What an action rejects stands at the form's fields; `renamed` maps a column to a field of another name."""
    try:
        yield
    except Rejected as error:
        for name, texts in error.errors.items():
            target = renamed.get(name, name)
            for text in texts:
                form.add_error(target if target in form.fields else None, text)


class PoolForm(forms.ModelForm[Pool]):
    """One pool."""

    selector = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        label="Node labels",
        help_text="key=value, one a line. Nodes that carry all of them belong to the pool.",
    )

    class Meta:
        model = Pool
        fields: ClassVar = ["slug", "name", "gpu_model", "gpu_resource", "order_policy", "is_on_hold"]
        labels: ClassVar = {
            "slug": "Short name",
            "gpu_model": "GPU model",
            "gpu_resource": "GPU resource",
            "order_policy": "Order within a tier",
            "is_on_hold": "On hold: running jobs go on, nothing new starts",
        }
        help_texts: ClassVar = {
            "slug": "Lower-case letters, digits and dashes. Cannot be changed later.",
            "gpu_model": "For people, such as NVIDIA H100 80 GB.",
            "gpu_resource": "As the device plugin calls it; empty for a pool without GPUs.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["selector"].initial = "\n".join(
            f"{k}={v}" for k, v in self.instance.node_selector.items()
        )
        if self.instance.pk:
            self.fields["slug"].disabled = True  # objects in the cluster are named after it

    def clean_selector(self) -> dict[str, str]:
        """The labels as a mapping."""
        found = labels_of(self.cleaned_data["selector"])
        self.instance.node_selector = found
        return found


class QuotaForm(forms.ModelForm[Quota]):
    """What one team may hold in one pool."""

    version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Quota
        fields: ClassVar = ["guarantee", "borrow_cap", "lend_cap", "hard_max", "per_user_cap"]
        labels: ClassVar = {"hard_max": "Hard maximum", "per_user_cap": "Per-user cap"}
        help_texts: ClassVar = {
            "guarantee": "Always there for the team.",
            "borrow_cap": "How much above the guarantee while others are idle.",
            "lend_cap": "How much of an idle guarantee others may take.",
            "hard_max": "Never more than this; empty for no bound.",
            "per_user_cap": "The most one person may hold; empty for no bound.",
        }


class TeamForm(forms.ModelForm[Team]):
    """A new team."""

    class Meta:
        model = Team
        fields: ClassVar = ["name", "slug", "description"]
        labels: ClassVar = {"slug": "Short name"}
        help_texts: ClassVar = {
            "slug": "Lower-case letters, digits and dashes. Names the namespace; cannot be changed later.",
        }
        widgets: ClassVar = {"description": forms.Textarea(attrs={"rows": 3})}


class GroupForm(forms.Form):
    """What a group of the identity provider shall mean."""

    group = forms.CharField(
        max_length=255,
        strip=False,  # compared exactly as the provider sends it
        label="Group at the identity provider",
        help_text="Exactly as the provider sends it; upper and lower case differ.",
        widget=forms.TextInput(attrs={"list": "groups-seen", "autocomplete": "off", "spellcheck": "false"}),
    )
    team = forms.ModelChoiceField(
        Team.objects.none(),
        to_field_name="slug",
        required=False,
        empty_label="The whole platform",
        label="Where",
    )
    role = forms.ChoiceField(
        choices=[
            ("In a team", [(role, role.capitalize()) for role in TeamRole]),
            ("On the whole platform", [(role, role.capitalize()) for role in PlatformRole]),
        ],
        help_text="Leads order the team's queue, developers submit and cancel, viewers read. Nobody on the platform "
        "reads a team's logs.",
    )

    def __init__(self, *args: Any, teams: QuerySet[Team], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["team"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = teams
