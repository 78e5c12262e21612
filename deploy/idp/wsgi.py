"""The provider as uvicorn serves it."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.idp.settings")
application = get_wsgi_application()
