"""unit: pure, in seconds · integration: a database · cluster: a real Kubernetes · e2e: all of it and a browser.

Paths mirror the code. builders.py makes rows that are valid by default, through the product's own actions;
postgresql.py runs pytest on a PostgreSQL of its own; bench/ measures and asserts nothing.
"""
