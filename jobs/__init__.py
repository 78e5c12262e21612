"""What runs: submission, admission, pods, GPUs in use, logs.

actions/      what changes rows      queries/   what reads them, for a viewer or whole for reconcile
admission/    who starts and why the others wait (pure)
reconcile.py  the cluster made so    observe.py, status.py  what the cluster says
usage.py      GPUs in use, one answer for admission, pages and API
logs/         from a container's output to the browser

Confusions: a *job* is ours and has attempts; each attempt is one Kubernetes Job with a pod for each worker.
"""
