"""Pages of this app."""

from django.urls import path

from tenants import login, views

urlpatterns = [
    path("sign-in/", login.SignIn.as_view(), name="sign-in"),
    path("oidc/callback/", login.Callback.as_view(), name="oidc_authentication_callback"),
    path("sign-out/", login.sign_out, name="sign-out"),
    path("signed-out/", login.signed_out, name="signed-out"),
    path("teams/", views.team_list, name="team-list"),
    path("teams/new/", views.team_new, name="team-new"),
    path("teams/<slug:slug>/", views.team_detail, name="team-detail"),
    path("pools/", views.pool_list, name="pool-list"),
    path("pools/new/", views.pool_form, name="pool-new"),
    path("pools/<slug:slug>/", views.pool_form, name="pool-form"),
    path("quotas/", views.quota_list, name="quota-list"),
    path("quotas/<slug:team>/<slug:pool>/", views.quota_form, name="quota-form"),
    path("tiers/", views.tier_list, name="tier-list"),
    path("groups/", views.group_list, name="group-list"),
    path("groups/new/", views.group_new, name="group-new"),
    path("groups/<int:pk>/remove/", views.group_remove, name="group-remove"),
    path("audit/", views.audit_list, name="audit-list"),
]
