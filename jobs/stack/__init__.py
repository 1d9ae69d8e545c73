"""The embedded stack: broker, web, janitor and workers, started and stopped together on one machine."""
