"""Who may use what: teams, groups, pools, quotas, tiers, sign-in, audit.

claims.py → access.py    the provider's groups to roles to verbs (pure)
actions.py, queries.py   what changes rows, what reads them for a viewer
reconcile.py             teams, tiers and pools made so in the cluster, from manifests.py
provider.py → login.py   the identity provider and its tokens; who is asking: sign-in, bearers, each request's viewer

Confusions: a *role* is within a team or on the platform; what it allows is in access.py and nowhere else. A *quota* is
what a team is allowed in one pool; the namespace's ResourceQuota is made from all of them.
"""
