"""The admin is the whole site; beside it, where workers of other hosts bring the files of their runs."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from jobs.transfer import transfer

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("i18n/", include("django.conf.urls.i18n")),
    path("admin/", admin.site.urls),
    path("transfer/<int:job>/<path:path>", transfer),
]
