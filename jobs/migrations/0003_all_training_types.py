"""The configurations that ship, once more: every training type of the MiniMind scripts is there now."""

from django.db import migrations

from jobs.builtin_configs import ensure_builtin_configs


def write_builtin_configs(apps, schema_editor):
    ensure_builtin_configs(apps.get_model("jobs", "TrainingConfig"))


class Migration(migrations.Migration):
    dependencies = [("jobs", "0002_builtin_configs")]
    operations = [migrations.RunPython(write_builtin_configs, migrations.RunPython.noop)]
