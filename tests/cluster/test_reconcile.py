"""Reconcile on a real API server, as the worker's own identity."""

import pytest
from django.utils import timezone

from deploy.devcluster import DevCluster
from jobs import reconcile
from jobs.models import Job, JobEvent
from jobs.state import JobState
from tenants import reconcile as tenancy
from tenants.actions import SYSTEM, create_team
from tenants.models import AuditEvent, Team
from tests.cluster.scene import found, submitted
from tests.integration.jobs.test_submission import in_parallel

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]


def test_a_team_becomes_namespace_roles_quota_and_limits(tenancy_ready: DevCluster) -> None:
    team = Team.objects.get(slug="a")
    assert (team.condition, team.condition_message) == ("Ready", "")
    kinds = {
        item["kind"]
        for item in found(
            tenancy_ready, "role,rolebinding,resourcequota,limitrange,serviceaccount", "-n", team.namespace
        )["items"]
    }
    assert kinds == {"Role", "RoleBinding", "ResourceQuota", "LimitRange", "ServiceAccount"}
    bindings = found(tenancy_ready, "rolebinding", "-n", team.namespace)["items"]
    groups = {subject["name"] for binding in bindings for subject in binding["subjects"]}
    assert groups == {"oidc:ml-team-a", "oidc:ml-team-a-leads", "oidc:ml-team-a-viewers"}


def test_a_second_reconcile_writes_nothing(tenancy_ready: DevCluster) -> None:
    team = Team.objects.get(slug="a")
    what = ("namespace,role,rolebinding,resourcequota,limitrange,serviceaccount", "-n", team.namespace)

    def versions() -> dict[str, str]:
        return {
            f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
            for item in found(tenancy_ready, *what)["items"]
            if item["kind"] != "ResourceQuota"  # its status is written by the quota controller
        }

    before = versions()
    tenancy.reconcile_team(team.pk)
    assert versions() == before


def test_a_foreign_change_is_put_back(tenancy_ready: DevCluster) -> None:
    team = Team.objects.get(slug="a")
    where = ("-n", team.namespace)
    tenancy_ready.kubectl("delete", "limitrange", "--all", *where)
    role = found(tenancy_ready, "role", *where)["items"][0]["metadata"]["name"]
    patch = '[{"op":"replace","path":"/rules/0/verbs","value":["*"]}]'
    tenancy_ready.kubectl("patch", "role", role, *where, "--type=json", f"-p={patch}")
    tenancy.reconcile_team(team.pk)
    assert found(tenancy_ready, "limitrange", *where)["items"]
    assert found(tenancy_ready, "role", role, *where)["rules"][0]["verbs"] != ["*"]


def test_a_namespace_that_exists_already_is_refused_and_left_alone(tenancy_ready: DevCluster) -> None:
    """RW-079: nobody takes a namespace over by naming a team after it."""
    name = f"team-somebody-{timezone.now():%H%M%S%f}"
    tenancy_ready.kubectl("create", "namespace", name)
    before = found(tenancy_ready, "namespace", name)
    team = create_team(actor=SYSTEM, slug=name.removeprefix("team-"), name="Newcomers")
    assert team.namespace == name
    tenancy.reconcile_team(team.pk)
    team.refresh_from_db()
    assert team.condition == "Blocked"
    assert name in team.condition_message
    assert found(tenancy_ready, "namespace", name) == before
    assert found(tenancy_ready, "rolebinding,resourcequota", "-n", name)["items"] == []


def test_one_job_delivered_to_eight_workers_at_once_is_one_job_in_the_cluster(
    tenancy_ready: DevCluster,
) -> None:
    """RW-049: the claim, not the queue, keeps work from being done twice."""
    job = submitted()
    in_parallel(lambda _: reconcile.reconcile_job(job.pk))
    jobs = found(tenancy_ready, "jobs", "-n", job.team.namespace)["items"]
    assert len(jobs) == 1
    assert JobEvent.objects.filter(job=job, state=JobState.ADMITTED).count() == 1
    assert AuditEvent.objects.filter(action="submit job").count() == 1


def test_a_worker_that_died_after_the_write_is_followed_by_one_that_finds_it(
    tenancy_ready: DevCluster,
) -> None:
    job = submitted()
    reconcile.reconcile_job(job.pk)
    Job.objects.filter(pk=job.pk).update(kube_uid="", state=JobState.ADMITTED)  # as if never recorded
    reconcile.reconcile_job(job.pk)
    jobs = found(tenancy_ready, "jobs", "-n", job.team.namespace)["items"]
    assert len(jobs) == 1
    job.refresh_from_db()
    assert job.kube_uid == jobs[0]["metadata"]["uid"]


def test_a_job_deleted_with_kubectl_is_cancelled_and_not_made_again(tenancy_ready: DevCluster) -> None:
    job = submitted()
    reconcile.reconcile_job(job.pk)
    where = ("-n", job.team.namespace)
    tenancy_ready.kubectl("delete", "jobs", "--all", "--cascade=foreground", "--wait", *where)
    reconcile.reconcile_job(job.pk)
    job.refresh_from_db()
    assert (job.state, job.reason) == (JobState.CANCELLED, "DeletedInCluster")
    assert found(tenancy_ready, "jobs", *where)["items"] == []


def test_argv_arrives_in_the_manifest_so_that_the_kubelet_gives_back_what_was_typed(
    tenancy_ready: DevCluster,
) -> None:
    """RW-036: Kubernetes expands $(NAME) and turns $$ into $; the manifest escapes both."""
    argv = ("python", "-c", "print('x\"y', '$(HOME)', '$$')", "", " ", "run one", "it's")
    job = submitted(argv=argv)
    reconcile.reconcile_job(job.pk)
    made = found(tenancy_ready, "jobs", "-n", job.team.namespace)["items"][0]
    command = made["spec"]["template"]["spec"]["containers"][0]["command"]
    assert [argument.replace("$$", "$") for argument in command] == list(argv)
    assert command[2] == "print('x\"y', '$$(HOME)', '$$$$')"


def test_the_worker_is_not_cluster_admin(cluster: DevCluster) -> None:
    asked = (
        ("create", "clusterrolebindings.rbac.authorization.k8s.io", "no"),
        ("get", "secrets", "no"),
        ("create", "pods", "no"),
        ("create", "jobs.batch", "yes"),
        ("create", "namespaces", "yes"),
    )
    for verb, resource, answer in asked:
        result = cluster.kubectl(
            "auth", "can-i", verb, resource, "--all-namespaces", who="worker", check=False
        )
        assert result.stdout.strip().splitlines()[-1] == answer, (verb, resource, result.stdout)
