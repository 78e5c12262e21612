"""Berth beside what a user would use instead, in one run, on a real API server: `make bench`.

__main__.py  starts the product and a cluster of their own, runs the rows, prints the table, writes the JSON
rows.py      what a row is; medians and percentiles; the table
cluster.py   the cluster as the rows see it: raw requests, kubectl, processor time, writes
tenancy.py   reconcile of many teams beside kubectl and a raw loop; a full check that has nothing to do
submit.py    submit → pod beside `kubectl create job`
logs.py      a line → the browser beside `kubectl logs -f`

Ratios count; absolute times are those of the machine. Both sides of a ratio run in turns in the same minutes.
"""
