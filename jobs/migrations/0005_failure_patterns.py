"""The failures that ship, and which of the patterns mean that memory ran out."""

from django.db import migrations, models

from jobs.failure_patterns import ensure_known_failures


def write_known_failures(apps, schema_editor):
    ensure_known_failures(apps.get_model("jobs", "FailurePattern"))


class Migration(migrations.Migration):
    dependencies = [("jobs", "0004_queue_rules")]
    operations = [
        migrations.AddField(
            model_name="failurepattern",
            name="out_of_memory",
            field=models.BooleanField(
                default=False,
                help_text="The advice is computed from the job's own parameters.",
                verbose_name="out of memory",
            ),
        ),
        migrations.RunPython(write_known_failures, migrations.RunPython.noop),
    ]
