"""The configurations that ship, for every training type that there is."""

from django.db import migrations

from jobs.builtin_configs import ensure_builtin_configs


def write_builtin_configs(apps, schema_editor):
    ensure_builtin_configs(apps.get_model("jobs", "TrainingConfig"))


class Migration(migrations.Migration):
    dependencies = [("jobs", "0001_initial")]
    operations = [migrations.RunPython(write_builtin_configs, migrations.RunPython.noop)]
