"""The whole product on one machine with a real identity provider and Kubernetes: demo, checks, end-to-end tests.

stack.py    starts, watches and ends the processes
client.py   a person or a script that uses the portal through HTTP
scenario.py "team A submits 100 jobs, B and C one each"
check.py    the demo without a person, step by step
"""
