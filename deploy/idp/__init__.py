"""The demo's and the tests' OpenID Connect provider: a small Django project of its own on django-oauth-toolkit.

service.py    starts and ends it, mints ID tokens, changes groups: what others call
settings.py, urls.py, validator.py, wsgi.py, templates/    the project itself
seed.py       its people, its client
"""

from deploy.idp.service import Idp, IdpError, attach, start, stop

__all__ = ["Idp", "IdpError", "attach", "start", "stop"]
