"""What of a job's files a retention rule removed, and when a rule was last applied."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0005_failure_patterns'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='files_removed',
            field=models.CharField(blank=True, choices=[('checkpoints', 'Checkpoints'), ('all', 'Checkpoints and weights')], help_text='What a rule removed.', max_length=12, verbose_name='removed'),
        ),
        migrations.AddField(
            model_name='retentionrule',
            name='applied_at',
            field=models.DateTimeField(editable=False, null=True, verbose_name='last applied'),
        ),
    ]
