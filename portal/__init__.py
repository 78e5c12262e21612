"""The project: wiring, and whatever is about neither tenants nor jobs.

settings.py, env.py      every setting, read once, wrong ones named
queue.py                 ring a doorbell; broker.py and supervisor.py keep django-q2 quick and alive
reconciled.py, lease.py  who works on a row, who leads
health.py, live.py       who is well; news for open pages
rest.py                  what all of the API shares
kube/                    the cluster: the only package that knows the Kubernetes API

Confusions: a *claim* is for one row and one piece of work, a *lease* for a role over time.
"""
