"""The cluster: the only package that knows the Kubernetes API.

names.py, quantity.py, plan.py, errors.py are pure. objects.py is the documented subset of the API that we read.
client.py is the one door to the Kubernetes client library; informer.py lists and watches through it.
"""
