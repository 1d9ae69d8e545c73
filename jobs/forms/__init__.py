"""The forms of the admin, built from the config classes of the training types."""

from jobs.forms.config_form import ConfigForm
from jobs.forms.job_form import JobForm, job_form
from jobs.forms.resume_form import ResumeForm
from jobs.forms.training_config_form import TrainingConfigForm, training_config_form

__all__ = ["ConfigForm", "JobForm", "ResumeForm", "TrainingConfigForm", "job_form", "training_config_form"]
