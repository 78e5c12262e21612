"""What things are called in the cluster (pure): names, labels, selectors, valid for any input and free of collisions.

Rules from the Kubernetes documentation, "Object Names and IDs" and "Labels and Selectors". Free text goes to
annotations; labels and selectors hold ids only (RW-042, RW-046).
"""

import hashlib
import re
import unicodedata

FIELD_MANAGER = "berth"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "berth"
TEAM_LABEL = "berth/team"
POOL_LABEL = "berth/pool"  # on nodes, as label and as the key of the pool's taint
TIER_LABEL = "berth/tier"
JOB_LABEL = "berth/job"
ATTEMPT_LABEL = "berth/attempt"
JOB_NAME_ANNOTATION = "berth/job-name"
APPLIED_ANNOTATION = "berth/applied"  # digest of what was applied last
# The Job controller's own, from before it had a domain; a pod template that sets them is refused.
JOB_CONTROLLER_LABELS = frozenset({"job-name", "controller-uid"})
JOB_SERVICE_ACCOUNT = "berth-job"

MAX_LABEL = 63
# The Job controller appends "-" and five characters or a worker's index to make pod names; those become host names.
MAX_JOB_NAME = 52

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)

# Namespaces that are never a team's, whatever the settings say (RW-079).
RESERVED_NAMESPACES = frozenset({"default", "berth-system"})
RESERVED_NAMESPACE_PREFIXES = ("kube-", "openshift-", "openshift", "berth-")


def slugify(text: str, *, limit: int = MAX_LABEL, fallback: str = "x") -> str:
    """A valid DNS label made of free text: lower-case letters, digits, single dashes inside; at most `limit` long.

    Not unique: two texts may give one slug, so callers append an id or use `unique_slug`.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:limit].strip("-")
    return slug or fallback[:limit]


def unique_slug(text: str, *, limit: int = MAX_LABEL) -> str:
    """A valid DNS label that differs for different texts: the slug and, where it lost something, a digest."""
    slug = slugify(text, limit=limit)
    if slug == text:
        return slug
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slugify(text, limit=limit - 9)}-{digest}"


def job_name(name: str, job_id: int, attempt: int) -> str:
    """Name of the Job object of one attempt: readable, valid for any `name`, unique by id and attempt."""
    tail = f"-{job_id}-{attempt}"
    slug = slugify(name, limit=MAX_JOB_NAME - len(tail) - 2, fallback="job")
    # A Service of the same name must begin with a letter (RFC 1035).
    return f"{slug if slug[0].isalpha() else 'j-' + slug}{tail}"


def namespace_name(slug: str, *, prefix: str) -> str:
    """The namespace of the team with that slug."""
    return f"{prefix}{slug}"


def namespace_problem(namespace: str, *, reserved: frozenset[str] | set[str] = frozenset()) -> str | None:
    """Why a team may not have this namespace, in words; None when it may (RW-079)."""
    if not _DNS_LABEL.fullmatch(namespace):
        return "Use lower-case letters, digits and dashes; begin and end with a letter or digit; at most 63."
    is_reserved = namespace in RESERVED_NAMESPACES or namespace in reserved
    if is_reserved or namespace.startswith(RESERVED_NAMESPACE_PREFIXES):
        return f"“{namespace}” is reserved for the system."
    return None


def selector(*, job: str) -> str:
    """Label selector for the objects of one job. Takes an id and nothing else (RW-046).

    Raises ValueError when `job` is no id.
    """
    if not (job.isascii() and job.isdecimal()):
        raise ValueError(f"no job id: {job!r}")
    return f"{MANAGED_BY_LABEL}={MANAGED_BY},{JOB_LABEL}={job}"


def managed_selector() -> str:
    """Label selector for everything that is Berth's."""
    return f"{MANAGED_BY_LABEL}={MANAGED_BY}"


def is_valid_label_key(key: str) -> bool:
    """Whether `key` is an optional DNS subdomain with a slash, then a name of at most 63 characters."""
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return _QUALIFIED.fullmatch(name) is not None


def is_valid_label_value(value: str) -> bool:
    """Whether `value` is empty or at most 63 letters, digits, dashes, underscores and dots, well begun and ended."""
    return value == "" or _QUALIFIED.fullmatch(value) is not None


def is_extended_resource(name: str) -> bool:
    """Whether `name` is a resource of a device plugin: it has a domain that is not Kubernetes' own.

    Rule of the API server (k8s.io/kubernetes, pkg/apis/core/v1/helper, IsExtendedResourceName).
    """
    is_native = "/" not in name or "kubernetes.io/" in name or name.startswith("requests.")
    return not is_native and is_valid_label_key(f"requests.{name}")


def is_reserved_key(key: str) -> bool:
    """Whether a label or annotation key belongs to Berth or to Kubernetes itself."""
    prefix, slash, name = key.rpartition("/")
    if not slash:
        return name in JOB_CONTROLLER_LABELS
    domains = ("kubernetes.io", "k8s.io")
    return prefix == "berth" or any(prefix == each or prefix.endswith("." + each) for each in domains)
