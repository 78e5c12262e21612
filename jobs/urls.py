"""Pages of this app; the API's routes are in `portal/urls.py`."""

from django.urls import include, path

from jobs import views

urlpatterns = [
    path("", views.home, name="home"),
    path("jobs/", views.job_list, name="job-list"),
    path("jobs/new/", views.job_new, name="job-new"),
    path("jobs/<int:pk>/", views.job_detail, name="job-detail"),
    path("jobs/<int:pk>/cancel/", views.job_cancel, name="job-cancel"),
    path("jobs/<int:job_id>/logs/", include("jobs.logs.urls")),
    path("cluster/", views.cluster, name="cluster"),
]
