"""Everything read about jobs.

lists.py      what a viewer may see: jobs, one job, its pods and events
cluster.py    GPUs in use: the map, pools, teams
home.py       the first page
states.py     whole states for reconcile and admission (unscoped; never for pages)
"""

from jobs.queries.cluster import ClusterView, PoolView, allocation, cluster_view
from jobs.queries.home import HomeView, home_view, quota_lines
from jobs.queries.lists import get_job, jobs_for, waiting_cause
from jobs.queries.states import job_spec, queue_snapshot

__all__ = [
    "ClusterView",
    "HomeView",
    "PoolView",
    "allocation",
    "cluster_view",
    "get_job",
    "home_view",
    "job_spec",
    "jobs_for",
    "queue_snapshot",
    "quota_lines",
    "waiting_cause",
]
