"""Pages about teams, pools, quotas, tiers, groups and the audit trail."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from tenants.access import Verb, can
from tenants.actions import Rejected, create_team, map_group, save_pool, save_quota, unmap_group
from tenants.filters import AuditFilter
from tenants.forms import GroupForm, PoolForm, QuotaForm, TeamForm, errors_shown
from tenants.login import ViewerRequest
from tenants.models import Outcome, Pool, PriorityTier, Quota
from tenants.queries import (
    NotVisible,
    audit_for,
    get_mapping,
    get_pool,
    get_team,
    groups_seen,
    mappings_for,
    pool_lines,
    quotas_for,
    teams_for,
    tiers_for,
)

PAGE_SIZE = 50


@require_GET
def team_list(request: ViewerRequest) -> HttpResponse:
    """The viewer's teams."""
    rows = [(team, request.viewer.teams.get(team.pk)) for team in teams_for(request.viewer)]
    context = {"rows": rows, "may_change": _may_change(request)}
    return render(request, "tenants/team_list.html", context)


@require_GET
def team_detail(request: ViewerRequest, slug: str) -> HttpResponse:
    """One team: members' groups and roles, quota, tiers, how its namespace stands."""
    team = get_team(request.viewer, slug)
    context = {
        "team": team,
        "mappings": mappings_for(request.viewer).filter(team=team),
        "quotas": quotas_for(request.viewer).filter(team=team),
        "grants": team.tier_grants.select_related("tier"),
        "role": request.viewer.teams.get(team.pk),
        "default_tier": PriorityTier.objects.filter(is_default=True).first(),
        "may_change": _may_change(request),
    }
    return render(request, "tenants/team_detail.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def team_new(request: ViewerRequest) -> HttpResponse:
    """Create a team."""
    if not _may_change(request):
        return _forbidden(request, "Only platform admins create teams.")
    form = TeamForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with errors_shown(form):
            team = create_team(actor=request.viewer, **form.cleaned_data)
            messages.success(request, f"Team {team.name} is created; its namespace follows in a moment.")
            return redirect("team-detail", team.slug)
    status = 422 if request.method == "POST" else 200
    return render(request, "tenants/team_form.html", {"form": form}, status=status)


def _may_look(request: ViewerRequest) -> bool:
    return can(request.viewer, Verb.SEE_ADMINISTRATION)


def _forbidden(request: ViewerRequest, text: str = "") -> HttpResponse:
    context = {"title": "Not allowed", "text": text} if text else {}
    return render(request, "403.html", context, status=403)


@require_GET
def pool_list(request: ViewerRequest) -> HttpResponse:
    """Pools and how their nodes stand."""
    if not _may_look(request):
        return _forbidden(request)
    context = {"lines": pool_lines(request.viewer), "may_change": _may_change(request)}
    return render(request, "tenants/pool_list.html", context)


def _may_change(request: ViewerRequest) -> bool:
    return can(request.viewer, Verb.ADMINISTER)


@require_http_methods(["GET", "HEAD", "POST"])
def pool_form(request: ViewerRequest, slug: str = "") -> HttpResponse:
    """Create or change a pool."""
    if not _may_change(request):
        return _forbidden(request, "Only platform admins change pools.")
    pool = get_pool(request.viewer, slug) if slug else Pool()
    form = PoolForm(request.POST or None, instance=pool)
    if request.method == "POST" and form.is_valid():
        with errors_shown(form, node_selector="selector"):
            saved = save_pool(actor=request.viewer, pool=form.instance)
            messages.success(request, f"Pool {saved.name} is saved; its nodes follow in a moment.")
            return redirect("pool-list")
    status = 422 if request.method == "POST" else 200
    return render(request, "tenants/pool_form.html", {"form": form, "pool": pool}, status=status)


@require_GET
def quota_list(request: ViewerRequest) -> HttpResponse:
    """Matrix of teams and pools."""
    if not _may_look(request):
        return _forbidden(request)
    lines = pool_lines(request.viewer)
    by_key = {(quota.team_id, quota.pool_id): quota for quota in quotas_for(request.viewer)}
    rows = [
        (team, [(line.pool, by_key.get((team.pk, line.pool.pk))) for line in lines])
        for team in teams_for(request.viewer)
    ]
    context = {"lines": lines, "rows": rows, "may_change": _may_change(request)}
    return render(request, "tenants/quota_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def quota_form(request: ViewerRequest, team: str, pool: str) -> HttpResponse:
    """Set what one team may hold in one pool."""
    if not _may_change(request):
        return _forbidden(request, "Only platform admins change quotas.")
    the_team, the_pool = get_team(request.viewer, team), get_pool(request.viewer, pool)
    quota = Quota.objects.filter(team=the_team, pool=the_pool).first() or Quota(team=the_team, pool=the_pool)
    form = QuotaForm(request.POST or None, instance=quota, initial={"version": quota.version})
    if request.method == "POST" and form.is_valid():
        with errors_shown(form, version=""):
            save_quota(actor=request.viewer, quota=form.instance, version=form.cleaned_data["version"])
            messages.success(request, f"{the_team.name} in {the_pool.name}: saved.")
            return redirect("quota-list")
    status = 422 if request.method == "POST" else 200
    line = next(line for line in pool_lines(request.viewer) if line.pool == the_pool)
    context = {"form": form, "team": the_team, "pool": the_pool, "line": line}
    return render(request, "tenants/quota_form.html", context, status=status)


@require_GET
def tier_list(request: ViewerRequest) -> HttpResponse:
    """Priority tiers."""
    if not _may_look(request):
        return _forbidden(request)
    tiers = PriorityTier.objects.prefetch_related("grants__team").filter(pk__in=tiers_for(request.viewer))
    return render(request, "tenants/tier_list.html", {"tiers": tiers})


@require_GET
def group_list(request: ViewerRequest) -> HttpResponse:
    """Which group of the provider means what."""
    if not _may_look(request):
        return _forbidden(request)
    context = {"mappings": mappings_for(request.viewer), "may_change": _may_change(request)}
    return render(request, "tenants/group_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def group_new(request: ViewerRequest) -> HttpResponse:
    """Let a group mean a role."""
    if not _may_change(request):
        return _forbidden(request, "Only platform admins map groups.")
    initial = {name: request.GET[name] for name in ("team", "group") if name in request.GET}
    form = GroupForm(request.POST or None, initial=initial, teams=teams_for(request.viewer))
    if request.method == "POST" and form.is_valid():
        with errors_shown(form):
            mapping = map_group(actor=request.viewer, **form.cleaned_data)
            where = mapping.team or "the whole platform"
            messages.success(
                request,
                f"“{mapping.group}” is {mapping.role} of {where}, with each member's next request.",
            )
            return redirect("group-list")
    context = {"form": form, "seen": groups_seen(request.viewer)}
    return render(
        request, "tenants/group_form.html", context, status=422 if request.method == "POST" else 200
    )


@require_http_methods(["GET", "HEAD", "POST"])
def group_remove(request: ViewerRequest, pk: int) -> HttpResponse:
    """Ask first, then take a group's role away."""
    if not _may_change(request):
        return _forbidden(request, "Only platform admins map groups.")
    mapping = get_mapping(request.viewer, pk)
    where = mapping.team or "the whole platform"
    if request.method == "POST":
        try:
            unmap_group(actor=request.viewer, mapping=mapping)
        except Rejected as error:
            messages.error(request, str(error).removeprefix(": "))
        else:
            messages.success(request, f"“{mapping.group}” is no longer {mapping.role} of {where}.")
        return redirect("group-list")
    context = {
        "title": f"Take “{mapping.group}” away from {where}?",
        "detail": f"Whoever is {mapping.role} of {where} by this group alone loses that with the next request, "
        "here and in the cluster. Running jobs go on. The group can be mapped again at any time.",
        "verb": "Take it away",
        "back": reverse("group-list"),
        "tone": "danger",
    }
    return render(request, "confirm.html", context)


@require_GET
def audit_list(request: ViewerRequest) -> HttpResponse:
    """Who did or tried what."""
    if not can(request.viewer, Verb.SEE_AUDIT):
        raise NotVisible("There is no such page for you.")
    narrowed = AuditFilter(request.GET, queryset=audit_for(request.viewer))
    events = narrowed.qs if narrowed.is_valid() else audit_for(request.viewer).none()
    context = {
        "page": Paginator(events, PAGE_SIZE).get_page(request.GET.get("page")),
        "filter": narrowed,
        "outcomes": Outcome.choices,
        "is_filtered": any(request.GET.get(name) for name in AuditFilter.base_filters),
    }
    return render(request, "tenants/audit_list.html", context)
