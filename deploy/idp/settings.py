"""Settings of the provider; the directory and the address come from the environment that service.py gives."""

import os
from pathlib import Path

DIRECTORY = Path(os.environ["IDP_DIRECTORY"])
ISSUER = os.environ["IDP_ISSUER"]
SECRET_KEY = (DIRECTORY / "secret").read_text()
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "oauth2_provider",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
ROOT_URLCONF = "deploy.idp.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],
        "APP_DIRS": True,
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DIRECTORY / "idp.sqlite3",
        "OPTIONS": {
            "timeout": 20,
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL;",
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
LOGIN_URL = "/login/"
# A password equal to the user name is the point of a demo; hashing it slowly is not.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
# Cookies know no ports: other names than the portal's, or the two would sign each other out.
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "idp_session", "idp_csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
SECURE_PROXY_SSL_HEADER = None
OAUTH2_PROVIDER = {
    "OIDC_ENABLED": True,
    "OIDC_ISS_ENDPOINT": ISSUER,
    "OIDC_RSA_PRIVATE_KEY": (DIRECTORY / "signing.key").read_text(),
    "OIDC_RP_INITIATED_LOGOUT_ENABLED": True,
    "OIDC_RP_INITIATED_LOGOUT_ALWAYS_PROMPT": False,
    "OAUTH2_VALIDATOR_CLASS": "deploy.idp.validator.Validator",
    "PKCE_REQUIRED": True,
    "ALLOWED_REDIRECT_URI_SCHEMES": ["http", "https"],
    "SCOPES": {
        "openid": "who you are",
        "profile": "your name",
        "email": "your address",
        "groups": "your groups",
    },
    "ID_TOKEN_EXPIRE_SECONDS": 3600,
}
