"""The provider's addresses: the protocol at the root, and the sign-in form."""

from django.contrib.auth.views import LoginView
from django.urls import include, path

urlpatterns = [
    path("login/", LoginView.as_view(template_name="login.html")),
    path("", include("oauth2_provider.urls", namespace="oauth2_provider")),
]
