"""Every setting, in one place. What an operator may change comes from the environment (`portal/env.py`)."""

import re
import secrets
import sys
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import available_timezones

import django_stubs_ext
from csp.constants import NONCE, NONE, SELF

from portal.env import Env

django_stubs_ext.monkeypatch()  # makes ModelForm[Pool] and the like legal at run time

BASE_DIR = Path(__file__).resolve().parent.parent
env = Env()

# Which process this is: web, worker, observe, collect; empty for one-off commands.
BERTH_PROCESS = env.choice("PROCESS", "", ("", "web", "worker", "observe", "collect"))
DEBUG = env.flag("DEBUG", default=False)
SECRET_KEY = env.secret("SECRET_KEY")
if not SECRET_KEY:
    if BERTH_PROCESS:
        env.wrong("SECRET_KEY", "must be set, to at least 32 characters, the same for every process")
    SECRET_KEY = secrets.token_urlsafe(48)  # commands that keep nothing, such as checks and tests
elif len(SECRET_KEY) < 32:
    env.wrong("SECRET_KEY", "must have at least 32 characters")

BERTH_EXTERNAL_URL = env.url("EXTERNAL_URL", "http://127.0.0.1:8000")
_external = urlsplit(BERTH_EXTERNAL_URL)
ALLOWED_HOSTS = [_external.hostname or "127.0.0.1", *env.words("ALLOWED_HOSTS")]
CSRF_TRUSTED_ORIGINS = [BERTH_EXTERNAL_URL]
if env.flag("TRUSTED_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# The cluster -----------------------------------------------------------------------------------------------------
# May not exist yet: the cluster may come up after the portal. Empty: the cluster this process runs in.
BERTH_KUBECONFIG = env.text("KUBECONFIG")
BERTH_NAMESPACE_PREFIX = env.text("NAMESPACE_PREFIX", "team-")
if not re.fullmatch(r"([a-z0-9][a-z0-9-]{0,20})?", BERTH_NAMESPACE_PREFIX, re.ASCII):
    env.wrong("NAMESPACE_PREFIX", "must be at most 21 lower-case letters, digits and dashes, no dash first")
BERTH_RESERVED_NAMESPACES = env.words("RESERVED_NAMESPACES")
# As in the API server's authentication configuration: what it puts before names and groups from the provider.
BERTH_GROUPS_PREFIX = env.text("GROUPS_PREFIX", "oidc:")
BERTH_USERNAME_PREFIX = env.text("USERNAME_PREFIX", "oidc:")
BERTH_KEEP_FINISHED_SECONDS = env.number("KEEP_FINISHED_SECONDS", 300, low=0, high=30 * 86400)

# Applications ----------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin",
    "django_q",
    "rest_framework",
    "drf_spectacular",
    "django_filters",
    "django_htmx",
    "csp",
    "portal",
    "tenants",
    "jobs",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "tenants.login.ViewerMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "tenants.login.page_context",
            ]
        },
    }
]

# Database: SQLite for one host and trials, PostgreSQL for several processes under load (RW-003) ----------------
_own_folder = BASE_DIR / ".berth"
if not env.text("DATABASE_URL"):
    _own_folder.mkdir(exist_ok=True)
DATABASES = {"default": env.database("DATABASE_URL", f"sqlite:///{_own_folder / 'berth.sqlite3'}")}
_database = DATABASES["default"]
# Long-lived connections only where a process has a handful of them; under ASGI they would pile up.
_database["CONN_MAX_AGE"] = 60 if BERTH_PROCESS in ("worker", "observe", "collect") else 0
if _database["ENGINE"].endswith("sqlite3"):
    _database["OPTIONS"] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; "
        "PRAGMA mmap_size=134217728; PRAGMA cache_size=-20000; PRAGMA journal_size_limit=67108864",
    }
    # Several test processes need a file: an in-memory database has no WAL and no second connection.
    _database["TEST"] = {"NAME": env.text("TEST_DATABASE") or None}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Sign-in -------------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "tenants.User"
AUTHENTICATION_BACKENDS = ["tenants.login.OidcBackend", "django.contrib.auth.backends.ModelBackend"]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/signed-out/"
BERTH_OIDC_ISSUER = env.url("OIDC_ISSUER")
BERTH_OIDC_CA_FILE = env.file("OIDC_CA_FILE")
BERTH_OIDC_GROUPS_CLAIM = env.text("OIDC_GROUPS_CLAIM", "groups")
BERTH_OIDC_USERNAME_CLAIM = env.text("OIDC_USERNAME_CLAIM", "preferred_username")
OIDC_RP_CLIENT_ID = env.text("OIDC_CLIENT_ID")
OIDC_RP_CLIENT_SECRET = env.secret("OIDC_CLIENT_SECRET")
if BERTH_PROCESS == "web":
    for _name, _value in (("OIDC_ISSUER", BERTH_OIDC_ISSUER), ("OIDC_CLIENT_ID", OIDC_RP_CLIENT_ID)):
        if not _value:
            env.wrong(_name, "must be set")
OIDC_RP_SIGN_ALGO = "RS256"
OIDC_RP_SCOPES = env.text("OIDC_SCOPES", "openid email profile groups")
OIDC_USE_PKCE = True
OIDC_TIMEOUT = 5
OIDC_VERIFY_SSL = BERTH_OIDC_CA_FILE or True
OIDC_STORE_ID_TOKEN = True
OIDC_CREATE_USER = True
# Found by discovery at the first sign-in (`tenants/provider.py`); the library insists that they are set.
OIDC_OP_AUTHORIZATION_ENDPOINT = OIDC_OP_TOKEN_ENDPOINT = OIDC_OP_USER_ENDPOINT = OIDC_OP_JWKS_ENDPOINT = ""
BERTH_SESSION_RENEWAL_SECONDS = env.number("SESSION_RENEWAL_SECONDS", 900, low=30, high=86400)
BERTH_SESSION_GRACE_SECONDS = env.number("SESSION_GRACE_SECONDS", 3600, low=0, high=7 * 86400)
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "berth_session", "berth_csrf"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _external.scheme == "https"
SESSION_COOKIE_SAMESITE = "Lax"

# Browser ---------------------------------------------------------------------------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF, *([BERTH_OIDC_ISSUER] if BERTH_OIDC_ISSUER else [])],
    }
}
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
STATIC_URL = "/static/"
# Collected for production; without it the files are found where they lie.
_collected = BASE_DIR / "staticfiles"
STATIC_ROOT = _collected if _collected.is_dir() or "collectstatic" in sys.argv else None
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
LANGUAGE_CODE, USE_I18N, USE_TZ = "en", False, True
TIME_ZONE = env.choice("TIME_ZONE", "UTC", available_timezones())

# REST ------------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tenants.login.BearerAuthentication",
        "tenants.login.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.rest.JsonParser"],
    "DEFAULT_PAGINATION_CLASS": "portal.rest.Pages",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "portal.rest.problem",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Berth",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
}

# Background work (docs of django-q2; decisions in docs/adr) -----------------------------------
BERTH_TASK_TIMEOUT = env.number("TASK_TIMEOUT", 120, low=5, high=3600)
BERTH_TASK_RETRY = env.number("TASK_RETRY", 900, low=10, high=86400)
BERTH_WORKERS = env.number("WORKERS", 2, low=1, high=32)
# A second worker must not get a task while the first may still run it (RW-049).
if BERTH_TASK_RETRY < 2 * BERTH_TASK_TIMEOUT:
    env.wrong("TASK_RETRY", f"must be at least twice BERTH_TASK_TIMEOUT ({BERTH_TASK_TIMEOUT})")
Q_CLUSTER = {
    "name": "berth",
    "broker_class": "portal.broker.Broker",
    "orm": "default",
    "workers": BERTH_WORKERS,
    "timeout": BERTH_TASK_TIMEOUT,
    "retry": BERTH_TASK_RETRY,
    "queue_limit": 2 * BERTH_WORKERS,
    "bulk": 1,
    "poll": 0.2,
    "save_limit": -1,  # a doorbell leaves no record; the row it rings for does
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    "recycle": 500,
    "guard_cycle": 1,
    "log_level": "WARNING",
    "scheduler": False,
    "daemonize_workers": True,
}

# Logs ------------------------------------------------------------------------------------------------------------
_level = env.text("LOG_LEVEL", "INFO").upper()
if _level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
    env.wrong("LOG_LEVEL", f"must be DEBUG, INFO, WARNING or ERROR, not {_level!r}")
    _level = "INFO"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": f"%(asctime)s {BERTH_PROCESS or 'berth'} %(levelname)s %(name)s: %(message)s"}
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": _level},
    "loggers": {"django.request": {"level": "ERROR"}, "django-q": {"level": "WARNING"}},
}

env.finish()
