"""The web process: `uvicorn portal.asgi:application`."""

import os
import sys

from django.core.asgi import get_asgi_application

from portal.env import EnvironmentErrors

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
os.environ.setdefault("BERTH_PROCESS", "web")
try:
    application = get_asgi_application()
except EnvironmentErrors as error:
    sys.exit(str(error))
