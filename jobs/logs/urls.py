"""Below /jobs/<id>/logs/."""

from django.urls import path

from jobs.logs import views

urlpatterns = [
    path("streams", views.streams, name="log-streams"),
    path("<int:stream_id>/lines", views.lines, name="log-lines"),
    path("<int:stream_id>/search", views.search, name="log-search"),
    path("<int:stream_id>/raw", views.raw, name="log-raw"),
    path("<int:stream_id>/follow", views.follow, name="log-follow"),
]
