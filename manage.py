#!/usr/bin/env python
"""Django's command line for Nightshift."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webadmin.settings")
    from django.core.management import execute_from_command_line

    from webadmin.environment import WrongSetting

    try:
        execute_from_command_line(sys.argv)
    except WrongSetting as error:
        sys.exit(f"error: {error}")
